"""Speed, memory and accuracy, each against a peer or a limit in the same run."""
