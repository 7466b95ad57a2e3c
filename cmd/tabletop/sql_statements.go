package main

import "strings"

// statements cuts text into statements of SQL, line by line. The zero value is ready.
type statements struct {
	text strings.Builder // of the open statement
	line strings.Builder // the same in one line, without comments; see history
	// in is the end of the open literal or comment; "" outside of them.
	in   string
	some bool // the open statement has more than blanks and comments
}

// statement is a statement of SQL.
type statement struct {
	text string // without the semicolon
	line string // in one line
}

// add adds a line, which has its line break unless it is the last, and returns the statements that end in it.
func (s *statements) add(line string) (ended []statement) {
	for i := 0; i < len(line); {
		inside := s.in != ""
		n := s.token(line[i:])
		if !inside && line[i] == ';' {
			if s.some {
				ended = append(ended, s.end())
			}
			s.reset()
		} else if s.some { // leading blanks and comments would move the positions in errors
			s.text.WriteString(line[i : i+n])
		}
		i += n
	}
	return ended
}

// token returns the length of the piece of a statement that rest begins with, and adds the piece to
// the line.
func (s *statements) token(rest string) int {
	switch {
	case s.in == "*/":
		return s.comment(rest)
	case s.in != "":
		return s.literal(rest)
	}
	switch c := rest[0]; {
	case c == '#' || strings.HasPrefix(rest, "--"):
		if end := strings.IndexByte(rest, '\n'); end >= 0 {
			return end // the line break is a blank
		}
		return len(rest)
	case strings.HasPrefix(rest, "/*"):
		s.in = "*/"
		s.blank()
		return 2
	case c == '\'' || c == '"' || c == '`':
		s.in = rest[:1]
		if triple := strings.Repeat(s.in, 3); c != '`' && strings.HasPrefix(rest, triple) {
			s.in = triple
		}
		s.some = true
		s.line.WriteString(s.in)
		return len(s.in)
	case c == ' ' || c == '\t' || c == '\r' || c == '\n':
		s.blank()
		return 1
	default:
		s.some = s.some || c != ';'
		s.line.WriteByte(c)
		return 1
	}
}

// blank separates words in the line.
func (s *statements) blank() {
	if s.some && !strings.HasSuffix(s.line.String(), " ") {
		s.line.WriteByte(' ')
	}
}

// comment returns the length of the part of a comment that is in the rest of the line. It clears s.in at the
// end of the comment.
func (s *statements) comment(rest string) int {
	if end := strings.Index(rest, s.in); end >= 0 {
		s.in = ""
		return end + 2
	}
	return len(rest)
}

// literal returns the length of the next piece of a literal or a quoted name, and adds the piece to the line.
// A backslash hides the next byte, even in raw literals. Only three quotes enclose several lines.
func (s *statements) literal(rest string) int {
	n := 1
	switch {
	case rest[0] == '\\' && len(rest) > 1:
		n = 2
	case strings.HasPrefix(rest, s.in):
		n, s.in = len(s.in), ""
	case rest[0] == '\n' && len(s.in) == 1: // the server refuses it
		s.in = ""
	}
	s.line.WriteString(rest[:n])
	return n
}

// open reports whether a statement has begun.
func (s *statements) open() bool { return s.some || s.in != "" }

// rest returns the statement at the end of the text, which needs no semicolon, and resets s. It returns
// false if only blanks and comments are left.
func (s *statements) rest() (statement, bool) {
	defer s.reset()
	return s.end(), s.some
}

func (s *statements) end() statement {
	return statement{strings.TrimSpace(s.text.String()), strings.TrimSpace(s.line.String())}
}

func (s *statements) reset() { *s = statements{} }
