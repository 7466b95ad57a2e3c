package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// ports is the content of a port file: the endpoints in the forms of BIGTABLE_EMULATOR_HOST and
// AWS_ENDPOINT_URL_DYNAMODB. A disabled endpoint is null. With --target, the target is the
// Bigtable endpoint. The token of the control API gives full control of the server, so only the
// owner can read a file with it.
type ports struct {
	Bigtable *string `json:"bigtable"`
	DynamoDB *string `json:"dynamodb"`
	REST     string  `json:"bigtableRest,omitempty"` // the URL for --bigtable-rest; "" without it
	Console  string  `json:"console,omitempty"`      // the URL of the control API; "" without it
	Token    string  `json:"token,omitempty"`        // its token, unless --token-file has it
}

// writePortFile writes the port file atomically, once clients can connect. The server deletes
// it at the end, unless another has replaced it.
func (s *serving) writePortFile() error {
	file := s.command.PortFile
	if file == "" {
		return nil
	}
	var p ports
	if s.command.Target != "" {
		p.Bigtable = &s.command.Target
	} else if s.bigtableAddr != nil {
		addr := clientAddr(s.bigtableAddr)
		p.Bigtable = &addr
	}
	if s.dynamoDBAddr != nil {
		url := s.dynamoDBURL()
		p.DynamoDB = &url
	}
	if s.restAddr != nil {
		p.REST = s.restURL()
	}
	write := replaceFile
	if s.consoleAddr != nil {
		p.Console, p.Token, write = s.consoleURL(), s.consoleToken, replacePrivateFile
	}
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	text = append(text, '\n')
	if err := write(file, text); err != nil {
		return err
	}
	s.closers = append(s.closers, func() error {
		if now, err := os.ReadFile(file); err != nil || !bytes.Equal(now, text) {
			return nil //nolint:nilerr // it is gone, or another's
		}
		return removePortFile(file)
	})
	return nil
}

// removePortFile removes a port file, if it exists; it rejects anything but a file.
func removePortFile(file string) error {
	if file == "" {
		return nil
	}
	info, err := os.Lstat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a file", file)
	}
	return os.Remove(file)
}
