"""How good a PRM is, and where it only seems so. Pure: scores and labels in, figures with intervals out."""
