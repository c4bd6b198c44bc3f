"""ROGRAG's logic form: a plan of typed operators, what code computes of them, and how it is run."""
