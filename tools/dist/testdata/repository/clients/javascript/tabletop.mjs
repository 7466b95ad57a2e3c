// tabletop.mjs
