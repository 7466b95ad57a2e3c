package main

import (
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// commonFlags are the flags of every command.
type commonFlags struct {
	Help    helpFlag         `short:"h" help:"Print this help and exit; =all includes rarely used flags." placeholder:"all" env:"-" group:"Common flags:"`
	Config  kong.ConfigFlag  `help:"Read flags from a JSON or YAML file ($$TABLETOP_CONFIG)." placeholder:"FILE" env:"-" group:"Common flags:"`
	Version kong.VersionFlag `help:"Print the version and exit." env:"-" group:"Common flags:"`
}

// command is the command line: the common flags and the grammars of commands.
type command struct {
	commonFlags
	kong.Plugins
}

func (*command) examples() []example {
	return []example{
		{"Run a Bigtable and a DynamoDB on this machine", "tabletop serve"},
		{"Browse the shipped data", "tabletop demo --console"},
		{"Infer a mapping for an export, and verify it", "tabletop migrate infer export -o orders.yaml"},
		{"", "tabletop migrate verify export --mapping orders.yaml"},
	}
}

// migrateCommand holds the grammars of its commands.
type migrateCommand struct{ kong.Plugins }

func (*migrateCommand) examples() []example {
	return []example{
		{"Infer a mapping, see its tables, verify it, and load", "tabletop migrate infer export -o orders.yaml"},
		{"", "tabletop migrate plan export --mapping orders.yaml"},
		{"", "tabletop migrate verify export --mapping orders.yaml"},
		{"", "tabletop migrate load export --mapping orders.yaml --target 127.0.0.1:8086"},
	}
}

// commands has the grammar of each command, in the order of the help.
var commands = []struct {
	name    string
	grammar func() any
}{
	{"serve", func() any {
		return &struct {
			Serve serveCommand `cmd:"" group:"Servers:" help:"Serve Bigtable and DynamoDB endpoints over the same rows."`
		}{}
	}},
	{"dynamodb-local", func() any {
		return &struct {
			Local dynamoDBLocalCommand `cmd:"" name:"dynamodb-local" group:"Servers:" help:"Serve DynamoDB with the flags of DynamoDB Local."`
		}{}
	}},
	{"ctl", func() any {
		return &struct {
			Ctl ctlCommand `cmd:"" group:"Servers:" help:"Control a server that runs with --console: snapshots, clock, faults, requests."`
		}{}
	}},
	{"healthcheck", func() any {
		return &struct {
			Healthcheck healthCommand `cmd:"" group:"Servers:" help:"Check whether a running server answers."`
		}{}
	}},
	{"demo", func() any {
		return &struct {
			Demo demoCommand `cmd:"" group:"Servers:" help:"Run the shipped fixtures end to end and show the results."`
		}{}
	}},
	{"sql", func() any {
		return &struct {
			SQL sqlCommand `cmd:"" name:"sql" group:"Servers:" help:"Run a SQL query in Bigtable."`
		}{}
	}},
	{"migrate infer", func() any {
		return &struct {
			Infer inferCommand `cmd:"" help:"Find a lossless mapping for a DynamoDB export."`
		}{}
	}},
	{"migrate plan", func() any {
		return &struct {
			Plan planCommand `cmd:"" help:"Show what a load would create, and whether each attribute survives."`
		}{}
	}},
	{"migrate load", func() any {
		return &struct {
			Load loadCommand `cmd:"" help:"Write a DynamoDB export as Bigtable rows."`
		}{}
	}},
	{"migrate verify", func() any {
		return &struct {
			Verify verifyCommand `cmd:"" help:"Compare a DynamoDB export with its Bigtable rows, in a private store or as written by another loader."`
		}{}
	}},
	{"migrate lint", func() any {
		return &struct {
			Lint lintCommand `cmd:"" help:"Check a mapping, its data and access patterns against the design guides."`
		}{}
	}},
	{"migrate diff", func() any {
		return &struct {
			Diff diffCommand `cmd:"" help:"Compare two inputs, two tables, or an input with a table."`
		}{}
	}},
	{"migrate reverse", func() any {
		return &struct {
			Reverse reverseCommand `cmd:"" help:"Write Bigtable rows as a DynamoDB export, ready for import."`
		}{}
	}},
	{"migrate follow", func() any {
		return &struct {
			Follow followCommand `cmd:"" help:"Apply the changes of live DynamoDB tables to the loaded Bigtable tables."`
		}{}
	}},
	{"migrate status", func() any {
		return &struct {
			Status statusCommand `cmd:"" help:"Show the migrations from live tables: phase, lag, and the next command."`
		}{}
	}},
	{"migrate finish", func() any {
		return &struct {
			Finish finishCommand `cmd:"" help:"End the migration of a live table, so that its Bigtable table accepts writes."`
		}{}
	}},
	{"help", func() any {
		return &struct {
			Help helpCommand `cmd:"" group:"About the program:" help:"Describe a command and its flags."`
		}{}
	}},
	{"completion", func() any {
		return &struct {
			Completion completionCommand `cmd:"" group:"About the program:" help:"Print a script that completes command lines in bash, zsh or fish."`
		}{}
	}},
	{"man", func() any {
		return &struct {
			Man manCommand `cmd:"" hidden:"" group:"About the program:" help:"Print a manual page."`
		}{}
	}},
	{"version", func() any {
		return &struct {
			Version versionCommand `cmd:"" group:"About the program:" help:"Print the version."`
		}{}
	}},
}

// grammar returns the grammar of a command, or with "" that of all commands.
func grammar(name string) *command {
	var migrate struct {
		Migrate migrateCommand `cmd:"" group:"Migration:" help:"Move DynamoDB data to Bigtable and verify the result."`
	}
	all := &command{}
	for _, c := range commands {
		switch {
		case name != "" && name != c.name:
		case !strings.HasPrefix(c.name, "migrate "):
			all.Plugins = append(all.Plugins, c.grammar())
		default:
			if len(migrate.Migrate.Plugins) == 0 {
				all.Plugins = append(all.Plugins, &migrate)
			}
			migrate.Migrate.Plugins = append(migrate.Migrate.Plugins, c.grammar())
		}
	}
	return all
}

// commandOf returns the command that args run, or "" if they may need the grammar of others.
// Reading the flags of all commands costs more time than opening a store. A configuration file
// may set the flags of any of them.
func commandOf(args []string) string {
	if slices.ContainsFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "--config") }) {
		return ""
	}
	if len(args) == 1 && args[0] == "--version" {
		return "version"
	}
	for _, c := range commands {
		words := strings.Fields(c.name)
		if len(args) >= len(words) && slices.Equal(args[:len(words)], words) {
			return c.name
		}
	}
	return ""
}
