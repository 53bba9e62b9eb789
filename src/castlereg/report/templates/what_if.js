/* What if: show the chosen column and outcome, and move the marks to the chosen value. All numbers are precomputed. */
(() => {
  const source = document.getElementById("what-if-data");
  if (!source) return;
  const { columns } = JSON.parse(source.textContent);
  const section = document.getElementById("what-if");
  const column = document.getElementById("what-column");
  const outcome = document.getElementById("what-outcome"); /* null with a single outcome */
  const answers = ["caused", "associated", "predicted", "distribution"].map((kind) =>
    document.getElementById("answer-" + kind));

  const chosen = () => [Number(column.value), outcome ? Number(outcome.value) : 0];
  const control = () => document.getElementById("value-" + chosen()[0]);

  const set = (element, attributes) => {
    if (!element) return;
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  };
  const moveCursor = (picture, [at, caused, associated, predicted, ...quantiles]) => {
    const row = picture.querySelector(".row");
    if (row) return set(row, { y: at - 20 });
    const cursor = picture.querySelector(".cursor");
    cursor.setAttribute("transform", "translate(" + at + " 0)");
    const dot = (kind, y) => {
      const mark = cursor.querySelector("." + kind);
      if (!mark) return;
      mark.toggleAttribute("hidden", y === null);
      if (y !== null) set(mark, { transform: "translate(0 " + y + ")" });
    };
    dot("caused", caused);
    dot("associated", associated);
    dot("predicted", predicted);
    if (!quantiles.length) return;
    set(cursor.querySelector(".spread"), { y1: quantiles[0], y2: quantiles[4] });
    set(cursor.querySelector(".half-of-rows"), { y1: quantiles[1], y2: quantiles[3] });
  };

  const update = () => {
    const [j, k] = chosen();
    const index = Number(control().value);
    const value = columns[j].values[index];
    const curve = columns[j].curves[k];
    const output = document.getElementById("value-text-" + j);
    if (output) {
      output.textContent = value;
      control().setAttribute("aria-valuetext", value);
    }
    document.getElementById("what-value").textContent = value;
    answers.forEach((answer, which) => {
      const text = curve.texts[index][which];
      answer.textContent = text;
      answer.closest("div").hidden = text === "";
    });
    moveCursor(section.querySelector(`figure[data-column="${j}"][data-outcome="${k}"] svg`), curve.marks[index]);
  };
  const show = () => {
    const [j, k] = chosen().map(String);
    for (const item of section.querySelectorAll("[data-column], [data-outcome]")) {
      const { column: ofColumn = j, outcome: ofOutcome = k } = item.dataset;
      item.hidden = ofColumn !== j || ofOutcome !== k;
    }
    update();
  };

  for (const kind of ["input", "change"]) { /* some browsers send only one of the two events for a select element */
    section.addEventListener(kind, (event) => (event.target.id.startsWith("value-") ? update() : show()));
  }
  section.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-choose]");
    if (!button) return;
    column.value = button.dataset.choose;
    show();
    column.focus();
  });
  show();
})();
