// tabletop-setup.mjs
