"""Training steps of other styles than the corpus, to check advice on programs that no rule was made for."""
