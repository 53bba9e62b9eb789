"""Pictures of a graph: what they show and where, drawn with matplotlib or as SVG."""
