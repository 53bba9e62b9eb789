"""Pictures of a graph: their content and layout, drawn with matplotlib or as SVG."""
