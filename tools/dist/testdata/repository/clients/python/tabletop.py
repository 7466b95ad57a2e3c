# tabletop.py
