package attr

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Problem is the kind of fault in a value.
type Problem uint8

// Problems that a value can have. Each comment names the fields of [Error] that depend on
// the problem.
const (
	// BadJSON: the input is not JSON, is truncated, or is not UTF-8. Err is the cause.
	BadJSON Problem = iota + 1
	// DuplicateName: a JSON object has two members with the same name. Text is the name.
	DuplicateName
	// WrongToken: the JSON is of the wrong kind for the type. Text is the kind that was
	// found ("string", "number", "object", …), and Want is the expected kind.
	WrongToken
	// NoType: null instead of a value, a value without a type tag, or null as the content
	// of a tag.
	NoType
	// ManyTypes: a value with two type tags. Text is the second tag.
	ManyTypes
	// UnknownType: an unknown type tag. Text is the tag.
	UnknownType
	// NullNotTrue: a NULL that is not true.
	NullNotTrue
	// BadBase64: a binary that is not standard padded base64. Text is the binary.
	BadBase64
	// EmptySet: a set without members. Type is SS, NS or BS.
	EmptySet
	// DuplicateMember: a set with a duplicate member. Type is SS, NS or BS. Members are the
	// members of the set, and Text is the same, joined by ", ".
	DuplicateMember
	// NotNumber: a malformed number. Text is the number as given.
	NotNumber
	// Overflow: a number of magnitude 1E126 or more. Text is the number.
	Overflow
	// Underflow: a number of magnitude less than 1E-130. Text is the number.
	Underflow
	// TooPrecise: a number with more than 38 significant digits. Text is the number.
	TooPrecise
	// TooDeep: lists and maps nested deeper than MaxDepth. Type is the type of the first
	// value beyond that depth, and Levels is the depth.
	TooDeep
	// LongName: the name of an attribute or map member that is longer than MaxNameBytes.
	// Text is the name.
	LongName
)

// Error is the type of the errors that the functions of this package return. It names the
// problem and its location.
type Error struct {
	Problem Problem
	// Older is the problem that the service's older layer finds in a number, or 0 if that
	// layer finds the same problem.
	Older Problem
	Type  Type   // type of the value at fault, or Absent
	Text  string // see Problem
	Want  string // expected kind of JSON for WrongToken
	// Members are the members of a set with a duplicate member, in the given order.
	// Numbers are in canonical form, and binaries in base64.
	Members []string
	// Levels is the depth of a value for TooDeep. Depths above MaxCountedDepth are reported
	// as MaxCountedDepth.
	Levels int
	// Path is the path to the value at fault, such as `Item.a[2].b`. It is "" for a value
	// outside an item.
	Path string
	// Offset is the byte offset in the JSON input, or -1.
	Offset int64
	Err    error // cause, or nil
}

func newError(p Problem, t Type, text string) *Error {
	return &Error{Problem: p, Type: t, Text: text, Offset: -1}
}

// Unwrap returns the cause, or nil.
func (e *Error) Unwrap() error { return e.Err }

// Error describes the fault and the path to the value.
func (e *Error) Error() string {
	if e.Path != "" {
		return e.Path + ": " + e.problem()
	}
	return e.problem()
}

func (e *Error) problem() string {
	switch e.Problem {
	case BadJSON:
		return fmt.Sprintf("not valid JSON: %v", e.Err)
	case DuplicateName:
		return fmt.Sprintf("member name %s appears twice", clip(e.Text))
	case WrongToken:
		if e.Type != Absent {
			return fmt.Sprintf("%s requires a JSON %s, found %s", e.Type, e.Want, e.Text)
		}
		return fmt.Sprintf("want a JSON %s, found %s", e.Want, e.Text)
	case NoType:
		return "value without a type tag"
	case ManyTypes:
		return fmt.Sprintf("value with more than one type tag, second is %s", clip(e.Text))
	case UnknownType:
		return fmt.Sprintf("unknown type tag %s, want one of S N B BOOL NULL SS NS BS L M", clip(e.Text))
	case NullNotTrue:
		return "NULL must be true"
	case BadBase64:
		return fmt.Sprintf("binary is not standard padded base64: %s", clip(e.Text))
	case EmptySet:
		return fmt.Sprintf("%s is empty", e.Type)
	case DuplicateMember:
		return fmt.Sprintf("%s has duplicate members: [%s]", e.Type, clipText(e.Text))
	case NotNumber:
		return fmt.Sprintf("not a number: %s", clip(e.Text))
	case Overflow:
		return fmt.Sprintf("number exceeds 9.99…E+125: %s", clip(e.Text))
	case Underflow:
		return fmt.Sprintf("number is smaller than 1E-130: %s", clip(e.Text))
	case TooPrecise:
		return fmt.Sprintf("number with more than %d significant digits: %s", MaxDigits, clip(e.Text))
	case TooDeep:
		return fmt.Sprintf("lists and maps nested deeper than %d levels", MaxDepth)
	case LongName:
		return fmt.Sprintf("name of %d bytes, want at most %d: %s", len(e.Text), MaxNameBytes, clip(e.Text))
	}
	return "invalid value"
}

func clip(s string) string { return strconv.Quote(clipText(s)) }

// clipText returns the beginning of s that an error shows.
func clipText(s string) string {
	const most = 120
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// CurrentAWSMessage returns the wording that replaced AWSMessage in most regions in
// 2026-06, or "" if the wording did not change. For a number, it describes Problem instead
// of Older, and shows Text even if it is empty. For a set with a duplicate member, it sorts
// the members before the first duplicate.
func (e *Error) CurrentAWSMessage() string {
	switch {
	case e.IsNumber():
		text := numberMessage(e.Problem, ": "+e.Text)
		if older, _ := e.AWSMessage(); older == text {
			return ""
		}
		return text
	case e.Problem != DuplicateMember:
		return ""
	}
	const text = "One or more parameter values were invalid: Input collection %scontains duplicates."
	read := map[string]bool{}
	shown := slices.Clone(e.Members)
	for i, member := range shown {
		if read[member] {
			slices.Sort(shown[:i])
			break
		}
		read[member] = true
	}
	for i, member := range shown {
		quoted, err := jsontext.AppendQuote(nil, member)
		if err != nil {
			return "" // members are UTF-8
		}
		shown[i] = string(quoted)
	}
	switch {
	case e.Type == SS:
		return fmt.Sprintf(text, "["+strings.Join(shown, ", ")+"] ")
	case e.Type == BS:
		return fmt.Sprintf(text, "["+strings.Join(shown, ",")+"]of type BS ")
	}
	return fmt.Sprintf(text, "")
}

// IsNumber reports whether the fault is in a number.
func (e *Error) IsNumber() bool {
	return e.Problem == NotNumber || e.Problem == Overflow || e.Problem == Underflow || e.Problem == TooPrecise
}

// AWSMessage returns DynamoDB's text for the error, in the older wording. serialization
// reports whether DynamoDB rejects the request as unreadable, with a SerializationException
// instead of a ValidationException.
//
// An unknown type tag has the text of a value without a type, because DynamoDB ignores
// unknown members.
func (e *Error) AWSMessage() (text string, serialization bool) {
	const invalid = "One or more parameter values were invalid: "
	switch e.Problem {
	case BadJSON, DuplicateName:
		return "", true
	case WrongToken:
		return e.tokenMessage(), true
	case BadBase64:
		return base64Message(e.Text), true
	case NoType, UnknownType:
		return "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes", false
	case ManyTypes:
		return "Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes", false
	case NullNotTrue:
		return invalid + "Null attribute value types must have the value of true", false
	case EmptySet:
		switch {
		case e.Type == SS:
			return invalid + "An string set  may not be empty", false
		case e.Type == NS:
			return invalid + "An number set  may not be empty", false
		}
		return invalid + "Binary sets should not be empty", false
	case DuplicateMember:
		switch {
		case e.Type == SS:
			return invalid + "Input collection [" + e.Text + "] contains duplicates.", false
		case e.Type == NS:
			return "Input collection contains duplicates", false
		}
		return invalid + "Input collection [" + e.Text + "]of type BS contains duplicates.", false
	case NotNumber, Overflow, Underflow, TooPrecise:
		problem, shown := e.Problem, ""
		if e.Older != 0 {
			problem = e.Older
		}
		if e.Text != "" {
			shown = ": " + e.Text
		}
		return numberMessage(problem, shown), false
	case TooDeep:
		return "Nesting Levels have exceeded supported limits: Attributes in the item have nested levels beyond supported limit", false
	case LongName: // ours: no capture of the service's text
		return invalid + "Attribute name must be between 1 and 65535 bytes long", false
	}
	return "", false
}

// numberTexts holds DynamoDB's texts for numbers that it cannot store.
var numberTexts = map[Problem]string{
	Overflow:   "Number overflow. Attempting to store a number with magnitude larger than supported range",
	Underflow:  "Number underflow. Attempting to store a number with magnitude smaller than supported range",
	TooPrecise: "Attempting to store more than 38 significant digits in a Number",
}

// numberMessage returns DynamoDB's text for a problem of a number. shown is the end of the text
// for NotNumber.
func numberMessage(problem Problem, shown string) string {
	if text, ok := numberTexts[problem]; ok {
		return text
	}
	return "The parameter cannot be converted to a numeric value" + shown
}
