// tabletop.d.mts
