"""Tables and pages made from a comparison."""
