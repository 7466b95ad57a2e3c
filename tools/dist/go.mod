module github.com/tabletop-emu/tabletop/tools/dist

go 1.26.0

