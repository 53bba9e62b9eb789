"""The entries of the catalogue, one per table; ``catalogue_entry.py`` describes the fields."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from castlereg.paper.datasets.catalogue_entry import CatalogueEntry, GraphEntry, Variant
from castlereg.paper.datasets.download import OpenMl, UciArchive, UciImport

_CC_BY = "CC BY 4.0"
_UCI = "https://archive.ics.uci.edu/dataset/"
_POLICE = (
    "LemasSwornFT",
    "LemasSwFTPerPop",
    "LemasSwFTFieldOps",
    "LemasSwFTFieldPerPop",
    "LemasTotalReq",
    "LemasTotReqPerPop",
    "PolicReqPerOffic",
    "PolicPerPop",
    "RacialMatchCommPol",
    "PctPolicWhite",
    "PctPolicBlack",
    "PctPolicHisp",
    "PctPolicAsian",
    "PctPolicMinor",
    "OfficAssgnDrugUnits",
    "NumKindsDrugsSeiz",
    "PolicAveOTWorked",
    "PolicCars",
    "PolicOperBudg",
    "LemasPctPolicOnPatr",
    "LemasGangUnitDeploy",
    "PolicBudgPerPop",
)
_COMMUNITY = ("state", "county", "community", "communityname", "fold")
_COMPOUND = ("CAS", "SMILES", "Set")
_MEMBERSHIP: Mapping[str, float] = MappingProxyType({"Member years": -1806})  # an error in the source
_PIMA_ZEROS = ("Glucose", "BloodPressure", "SkinThickness", "Insulin", "BMI")
_BY_SCIKIT_LEARN = "bundled with scikit-learn"
_TOY_PAGE = "https://scikit-learn.org/stable/datasets/toy_dataset.html"

TABLE_ENTRIES = (
    CatalogueEntry(
        name="boston_housing",
        title="Boston Housing",
        rows=506,
        columns=14,
        task="regression",
        target="MEDV",
        page="https://www.openml.org/d/531",
        licence="public, no formal licence; its column B encodes race",
        citation=(
            "Harrison and Rubinfeld (1978). Hedonic housing prices and the demand for clean air. Journal of "
            "Environmental Economics and Management 5, 81-102"
        ),
        origin=OpenMl(531),
        abbreviation="BH",
        paper_size=(506, 14),
        binary=("CHAS",),
        ordinal=("RAD",),
    ),
    CatalogueEntry(
        name="wine_quality_white",
        title="Wine Quality, white",
        rows=4898,
        columns=12,
        task="regression",
        target="quality",
        page=_UCI + "186/wine+quality",
        licence=_CC_BY,
        citation=(
            "Cortez, Cerdeira, Almeida, Matos and Reis (2009). Modeling wine preferences by data mining from "
            "physicochemical properties. Decision Support Systems 47, 547-553"
        ),
        origin=UciImport(186, rows=("color", "white")),
        abbreviation="WQ",
        paper_size=(4894, 12),
    ),
    CatalogueEntry(
        name="facebook_metrics",
        title="Facebook Metrics",
        rows=500,
        columns=19,
        task="regression",
        target="Total Interactions",
        page=_UCI + "368/facebook+metrics",
        licence=_CC_BY,
        citation=(
            "Moro, Rita and Vala (2016). Predicting social media performance metrics and evaluation of the impact "
            "on brand building: a data mining approach. Journal of Business Research 69, 3341-3351"
        ),
        origin=UciImport(368),
        abbreviation="FB",
        paper_size=(500, 19),
        binary=("Paid",),
        nominal=("Type", "Category"),
        ordinal=("Post Month", "Post Weekday", "Post Hour"),
        variants={
            "default": Variant("without comment, like and share", drop=("comment", "like", "share")),
            "with_components": Variant("with comment, like and share, whose sum is the target"),
        },
    ),
    CatalogueEntry(
        name="bioconcentration",
        title="QSAR Bioconcentration",
        rows=779,
        columns=14,
        task="regression",
        target="logBCF",
        page=_UCI + "510/qsar+bioconcentration+classes+dataset",
        licence=_CC_BY,
        citation=(
            "Grisoni, Consonni, Vighi, Villa and Todeschini (2016). Investigating the mechanisms of "
            "bioconcentration through QSAR classification trees. Environment International 88, 198-205"
        ),
        origin=UciArchive(510, "qsar+bioconcentration+classes+dataset", "Grisoni_et_al_2016_EnvInt88.csv"),
        abbreviation="BC",
        paper_size=(779, 14),
        variants={
            "default": Variant("logBCF by the nine descriptors", drop=(*_COMPOUND, "Class")),
            "classification": Variant(
                "three mechanisms: 1 lipid storage, 2 additional storage sites, 3 metabolised or eliminated",
                target="Class",
                task="classification",
                drop=(*_COMPOUND, "logBCF"),
            ),
            "binary": Variant(
                "mainly lipid storage (class 1) or not",
                target="Class",
                task="classification",
                drop=(*_COMPOUND, "logBCF"),
                positive=(1,),
            ),
        },
    ),
    CatalogueEntry(
        name="student_performance_por",
        title="Student Performance, Portuguese",
        rows=649,
        columns=33,
        task="regression",
        target="G3",
        page=_UCI + "320/student+performance",
        licence=_CC_BY,
        citation=(
            "Cortez and Silva (2008). Using data mining to predict secondary school student performance. FUBUTEC "
            "2008, 5-12"
        ),
        origin=UciImport(320),
        abbreviation="SP",
        paper_size=(649, 33),
        binary=(
            "school",
            "sex",
            "address",
            "famsize",
            "Pstatus",
            "schoolsup",
            "famsup",
            "paid",
            "activities",
            "nursery",
            "higher",
            "internet",
            "romantic",
        ),
        nominal=("Mjob", "Fjob", "reason", "guardian"),
        ordinal=(
            "Medu",
            "Fedu",
            "traveltime",
            "studytime",
            "failures",
            "famrel",
            "freetime",
            "goout",
            "Dalc",
            "Walc",
            "health",
        ),
        variants={
            "default": Variant("with the earlier grades G1 and G2, as the errors in the paper require"),
            "without_grades": Variant("without the earlier grades", drop=("G1", "G2")),
        },
    ),
    CatalogueEntry(
        name="communities_crime",
        title="Communities and Crime",
        rows=1994,
        columns=128,
        task="regression",
        target="ViolentCrimesPerPop",
        page=_UCI + "183/communities+and+crime",
        licence=_CC_BY,
        citation=(
            "Redmond and Baveja (2002). A data-driven software tool for enabling cooperative information sharing "
            "among police departments. European Journal of Operational Research 141, 660-678"
        ),
        origin=UciImport(183),
        abbreviation="CM",
        paper_size=(1994, 128),
        variants={
            "default": Variant(
                "without the 22 columns with more than half of their values missing", drop=_COMMUNITY + _POLICE
            ),
            "all_columns": Variant("all columns except the identifiers", drop=_COMMUNITY),
        },
    ),
    CatalogueEntry(
        name="contraceptive",
        title="Contraceptive Method Choice",
        rows=1473,
        columns=10,
        task="classification",
        target="contraceptive_method",
        page=_UCI + "30/contraceptive+method+choice",
        licence=_CC_BY,
        citation=(
            "Lim, Loh and Shih (2000). A comparison of prediction accuracy, complexity, and training time of "
            "thirty-three old and new classification algorithms. Machine Learning 40, 203-228"
        ),
        origin=UciImport(30),
        abbreviation="CC",
        paper_size=(1472, 9),
        binary=("wife_religion", "wife_working", "media_exposure"),
        nominal=("husband_occupation",),
        ordinal=("wife_edu", "husband_edu", "standard_of_living_index"),
        variants={
            "default": Variant("three classes: 1 none, 2 long-term, 3 short-term"),
            "binary": Variant("any method (1) or none (0)", positive=(2, 3)),
        },
    ),
    CatalogueEntry(
        name="pima_diabetes",
        title="Pima Indians Diabetes",
        rows=768,
        columns=9,
        task="classification",
        target="Outcome",
        page="https://www.openml.org/d/37",
        licence="no formal licence, distributed as public domain",
        citation=(
            "Smith, Everhart, Dickson, Knowler and Johannes (1988). Using the ADAP learning algorithm to forecast "
            "the onset of diabetes mellitus. Symposium on Computer Applications in Medical Care, 261-265"
        ),
        origin=OpenMl(
            37,
            renamed={
                "preg": "Pregnancies",
                "plas": "Glucose",
                "pres": "BloodPressure",
                "skin": "SkinThickness",
                "insu": "Insulin",
                "mass": "BMI",
                "pedi": "DiabetesPedigreeFunction",
                "age": "Age",
                "class": "Outcome",
            },
            recoded={"Outcome": {"tested_negative": 0, "tested_positive": 1}},
        ),
        abbreviation="PD",
        paper_size=(768, 9),
        variants={
            "default": Variant("as in the paper: zeros are zeros"),
            "zeros_missing": Variant(
                f"impossible zeros of {', '.join(_PIMA_ZEROS)} are missing",
                missing_codes=dict.fromkeys(_PIMA_ZEROS, 0),
            ),
        },
    ),
    CatalogueEntry(
        name="las_vegas",
        title="Las Vegas Strip",
        rows=504,
        columns=20,
        task="classification",
        target="Score",
        page=_UCI + "397/las+vegas+strip",
        licence=_CC_BY,
        citation=(
            "Moro, Rita and Coelho (2017). Stripping customers' feedback on hotels through data mining: the case "
            "of Las Vegas Strip. Tourism Management Perspectives 23, 41-52"
        ),
        origin=UciArchive(397, "las+vegas+strip", "LasVegasTripAdvisorReviews-Dataset.csv", ";", ","),
        abbreviation="LV",
        paper_size=(504, 20),
        binary=("Pool", "Gym", "Tennis court", "Spa", "Casino", "Free internet"),
        nominal=(
            "User country",
            "Period of stay",
            "Traveler type",
            "Hotel name",
            "User continent",
            "Review month",
            "Review weekday",
        ),
        variants={
            "default": Variant("five classes: the score", missing_codes=_MEMBERSHIP),
            "binary": Variant("score 5 (1) or lower (0)", positive=(5,), missing_codes=_MEMBERSHIP),
        },
    ),
    CatalogueEntry(
        name="statlog_heart",
        title="Statlog Heart",
        rows=270,
        columns=14,
        task="classification",
        target="heart-disease",
        page=_UCI + "145/statlog+heart",
        licence=_CC_BY,
        citation="Statlog (Heart). UCI Machine Learning Repository, https://doi.org/10.24432/C57303",
        origin=UciImport(145),
        abbreviation="SH",
        paper_size=(270, 13),
        binary=("sex", "fasting-blood-sugar", "angina"),
        nominal=("chest-pain", "electrocardiographic", "thal"),
        ordinal=("slope",),
    ),
    CatalogueEntry(
        name="diabetic_retinopathy",
        title="Diabetic Retinopathy Debrecen",
        rows=1151,
        columns=20,
        task="classification",
        target="Class",
        page=_UCI + "329/diabetic+retinopathy+debrecen",
        licence=_CC_BY,
        citation=(
            "Antal and Hajdu (2014). An ensemble-based system for automatic screening of diabetic retinopathy. "
            "Knowledge-Based Systems 60, 20-27"
        ),
        origin=UciImport(329, renamed={"exudate3.1": "exudate4"}),  # exudate3 is duplicated in the origin's header
        abbreviation="RP",
        paper_size=(1151, 20),
        binary=("quality", "pre_screening", "am_fm_classification"),
    ),
    CatalogueEntry(
        name="medical_expenditure",
        title="Medical Expenditure Panel Survey",
        rows=15786,
        columns=139,
        task="regression",
        target=None,
        page="https://meps.ahrq.gov",
        licence="public use files of the Agency for Healthcare Research and Quality, under its data use agreement",
        citation="Agency for Healthcare Research and Quality. Medical Expenditure Panel Survey",
        place="user",
        abbreviation="ME",
        paper_size=(15786, 139),
        variants={"default": Variant("health service utilization, from the user's file")},
    ),
    CatalogueEntry(
        name="maggic",
        title="Meta-analysis Global Group in Chronic Heart Failure",
        rows=40367,
        columns=33,
        task="classification",
        target=None,
        page="https://doi.org/10.1093/eurheartj/ehs337",
        licence="private: available only from the MAGGIC group",
        citation=(
            "Pocock and others (2013). Predicting survival in heart failure: a risk score based on 39 372 "
            "patients from 30 studies. European Heart Journal 34, 1404-1413"
        ),
        place="user",
        abbreviation="MG",
        paper_size=(40367, 33),
        variants={"default": Variant("mortality, from the user's file")},
    ),
    CatalogueEntry(
        name="diabetes",
        title="Diabetes progression",
        rows=442,
        columns=11,
        task="regression",
        target="target",
        page=_TOY_PAGE,
        licence=_BY_SCIKIT_LEARN,
        citation=(
            "Efron, Hastie, Johnstone and Tibshirani (2004). Least angle regression. Annals of Statistics 32, 407-499"
        ),
        place="scikit-learn",
        binary=("sex",),
    ),
    CatalogueEntry(
        name="iris",
        title="Iris",
        rows=150,
        columns=5,
        task="classification",
        target="target",
        page=_TOY_PAGE,
        licence=_BY_SCIKIT_LEARN,
        citation=(
            "Fisher (1936). The use of multiple measurements in taxonomic problems. Annals of Eugenics 7, 179-188"
        ),
        place="scikit-learn",
    ),
    CatalogueEntry(
        name="wine",
        title="Wine cultivars",
        rows=178,
        columns=14,
        task="classification",
        target="target",
        page=_TOY_PAGE,
        licence=_BY_SCIKIT_LEARN,
        citation=(
            "Aeberhard and Forina (1991). Wine. UCI Machine Learning Repository, https://doi.org/10.24432/C5PC7J"
        ),
        place="scikit-learn",
    ),
    CatalogueEntry(
        name="breast_cancer",
        title="Breast Cancer Wisconsin",
        rows=569,
        columns=31,
        task="classification",
        target="target",
        page=_TOY_PAGE,
        licence=_BY_SCIKIT_LEARN,
        citation=(
            "Street, Wolberg and Mangasarian (1993). Nuclear feature extraction for breast tumor diagnosis. SPIE "
            "1905, 861-870"
        ),
        place="scikit-learn",
    ),
)

_SACHS_LICENCE = "distributed as public research data"
_SACHS_CITATION = (
    "Sachs, Perez, Pe'er, Lauffenburger and Nolan (2005). Causal protein-signaling networks derived from "
    "multiparameter single-cell data. Science 308, 523-529"
)
_SACHS_PAGE = "https://www.bnlearn.com/research/sachs05/"
_SACHS_GRAPHS = {"default": "in_17_edge_graph", "20_edges": "in_20_edge_graph"}
_GPL = "GPL 2 or later, with the R package bnlearn"

GRAPH_ENTRIES = (
    GraphEntry(
        name="sachs",
        title="Sachs proteins, nine conditions pooled",
        rows=7466,
        columns=11,
        page=_SACHS_PAGE,
        licence=_SACHS_LICENCE,
        citation=_SACHS_CITATION,
        file="sachs.csv",
        edges_file="sachs_edges.csv",
        variants=_SACHS_GRAPHS,
    ),
    GraphEntry(
        name="sachs_observational",
        title="Sachs proteins, observational",
        rows=853,
        columns=11,
        page=_SACHS_PAGE,
        licence=_SACHS_LICENCE,
        citation=_SACHS_CITATION,
        file="sachs_observational.csv",
        edges_file="sachs_edges.csv",
        variants=_SACHS_GRAPHS,
    ),
    GraphEntry(
        name="asia",
        title="Asia network, sampled",
        rows=5000,
        columns=8,
        page="https://www.bnlearn.com/documentation/man/asia.html",
        licence=_GPL,
        citation=(
            "Lauritzen and Spiegelhalter (1988). Local computations with probabilities on graphical structures "
            "and their application to expert systems. Journal of the Royal Statistical Society B 50, 157-224"
        ),
        file="bnlearn_asia.csv",
        edges_file="bnlearn_asia_edges.csv",
    ),
    GraphEntry(
        name="alarm",
        title="ALARM network, sampled",
        rows=20000,
        columns=37,
        page="https://www.bnlearn.com/documentation/man/alarm.html",
        licence=_GPL,
        citation="Beinlich, Suermondt, Chavez and Cooper (1989). The ALARM monitoring system. AIME 89, 247-256",
        file="bnlearn_alarm.csv",
        edges_file="bnlearn_alarm_edges.csv",
    ),
    GraphEntry(
        name="tuebingen_pairs",
        title="Tuebingen cause-effect pairs",
        rows=99,
        columns=3,
        page="https://webdav.tuebingen.mpg.de/cause-effect/",
        licence="each pair has its own source; licences unknown",
        citation=(
            "Mooij, Peters, Janzing, Zscheischler and Schölkopf (2016). Distinguishing cause from effect using "
            "observational data: methods and benchmarks. Journal of Machine Learning Research 17(32)"
        ),
        file="tuebingen_pairs.csv",
    ),
)
