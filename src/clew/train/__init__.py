"""Training the think–query–answer agent on a knowledge base. Needs the extra `train`."""
