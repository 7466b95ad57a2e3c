module github.com/tabletop-emu/tabletop/emu/internal/filter/re2

go 1.26.0

require (
	cloud.google.com/go/bigtable v1.58.0
	github.com/tabletop-emu/tabletop v0.0.0
	github.com/wasilibs/go-re2 v1.13.0
	rsc.io/binaryregexp v0.2.0
)

require (
	golang.org/x/net v0.62.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/text v0.43.0 // indirect
	google.golang.org/genproto v0.0.0-20260519071638-aa98bba5eb94 // indirect
	google.golang.org/genproto/googleapis/api v0.0.0-20260817212433-ac3dfec99bb1 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260817212433-ac3dfec99bb1 // indirect
	google.golang.org/grpc v1.85.0 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)

replace github.com/tabletop-emu/tabletop => ../../../..
