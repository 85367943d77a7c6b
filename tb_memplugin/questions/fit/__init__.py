"""Questions about fits: the largest value of a knob that fits, the candidates, tried advice, and chips with room."""
