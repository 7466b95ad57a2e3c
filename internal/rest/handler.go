package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"google.golang.org/genproto/googleapis/api/annotations"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// maxBodyBytes is the size of the largest request body.
const maxBodyBytes = 64 << 20

// Options configures New.
type Options struct {
	// Conn carries the calls.
	Conn grpc.ClientConnInterface
	// Services are the full names of the services. Their Go packages must be linked, since these
	// register the descriptors.
	Services []string
	// Rules replace the annotations of methods, as the configuration of a service does. The keys are
	// full names of methods, such as google.longrunning.Operations.GetOperation.
	Rules map[string]*annotations.HttpRule
}

// Handler serves the services. It is safe for concurrent use.
type Handler struct {
	conn   grpc.ClientConnInterface
	routes map[string][]route // by HTTP method
}

// route is a binding of an HTTP method and path to a gRPC method.
type route struct {
	template template
	method   string // /package.Service/Method
	in, out  protoreflect.MessageType
	body     string                       // the field that the body fills, * for the whole message, "" for no body
	field    protoreflect.FieldDescriptor // of body; nil for * and ""
	stream   bool                         // the server streams
}

// New returns the handler of services. It fails if a service is unknown, or an annotation is
// invalid. Methods without an annotation, and those that stream from the client, have no route.
func New(o Options) (*Handler, error) {
	h := &Handler{conn: o.Conn, routes: map[string][]route{}}
	for _, name := range o.Services {
		d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(name))
		if err != nil {
			return nil, fmt.Errorf("service %s: %w", name, err)
		}
		service, ok := d.(protoreflect.ServiceDescriptor)
		if !ok {
			return nil, fmt.Errorf("%s is not a service", name)
		}
		methods := service.Methods()
		for i := range methods.Len() {
			m := methods.Get(i)
			rule := o.Rules[string(m.FullName())]
			if rule == nil {
				rule, _ = proto.GetExtension(m.Options(), annotations.E_Http).(*annotations.HttpRule)
			}
			if rule == nil || m.IsStreamingClient() {
				continue
			}
			for _, binding := range append([]*annotations.HttpRule{rule}, rule.GetAdditionalBindings()...) {
				if err := h.add(m, binding); err != nil {
					return nil, fmt.Errorf("%s: %w", m.FullName(), err)
				}
			}
		}
	}
	return h, nil
}

// add adds the route of a rule.
func (h *Handler) add(m protoreflect.MethodDescriptor, rule *annotations.HttpRule) error {
	var verb, path string
	switch p := rule.GetPattern().(type) {
	case *annotations.HttpRule_Get:
		verb, path = http.MethodGet, p.Get
	case *annotations.HttpRule_Put:
		verb, path = http.MethodPut, p.Put
	case *annotations.HttpRule_Post:
		verb, path = http.MethodPost, p.Post
	case *annotations.HttpRule_Delete:
		verb, path = http.MethodDelete, p.Delete
	case *annotations.HttpRule_Patch:
		verb, path = http.MethodPatch, p.Patch
	default:
		return fmt.Errorf("rule of kind %T is not supported", p)
	}
	t, err := compileTemplate(path)
	if err != nil {
		return err
	}
	r := route{template: t, method: "/" + string(m.Parent().FullName()) + "/" + string(m.Name()), body: rule.GetBody(), stream: m.IsStreamingServer()}
	if r.in, err = protoregistry.GlobalTypes.FindMessageByName(m.Input().FullName()); err != nil {
		return err
	}
	if r.body != "" && r.body != "*" {
		if r.field = r.in.Descriptor().Fields().ByTextName(r.body); r.field == nil || r.field.Message() == nil || r.field.IsList() || r.field.IsMap() {
			return fmt.Errorf("body %q is not a message field of the request", r.body)
		}
	}
	if r.out, err = protoregistry.GlobalTypes.FindMessageByName(m.Output().FullName()); err != nil {
		return err
	}
	h.routes[verb] = append(h.routes[verb], r)
	return nil
}

// ServeHTTP makes the call of a request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	found, values := h.find(r)
	if found == nil {
		WriteError(w, status.Errorf(codes.NotFound, "Method not found: %s %s is not a path of this API", r.Method, r.URL.Path))
		return
	}
	req, f, err := found.read(w, r, values)
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		_, _ = w.Write(bodyOf(http.StatusRequestEntityTooLarge, status.Newf(codes.InvalidArgument, "Request payload size exceeds the limit: %d bytes.", tooLarge.Limit)))
		return
	}
	if err != nil {
		WriteError(w, err)
		return
	}
	if found.stream {
		h.stream(w, r, found, req, f)
		return
	}
	resp := found.out.New().Interface()
	if err := h.conn.Invoke(r.Context(), found.method, req, resp); err != nil {
		WriteError(w, err)
		return
	}
	text, err := f.marshal(resp)
	if err != nil {
		WriteError(w, err)
		return
	}
	_, _ = w.Write(append(text, '\n')) // the client may have gone
}

// find returns the route of a request and the values of its path; nil if no route matches.
func (h *Handler) find(r *http.Request) (found *route, values []string) {
	routes := h.routes[r.Method]
	for i := range routes {
		if values, ok := routes[i].template.match(r.URL.EscapedPath()); ok {
			return &routes[i], values
		}
	}
	return nil, nil
}

// read returns the request message. The path takes precedence over the body, and the body over
// the query.
func (o *route) read(w http.ResponseWriter, r *http.Request, values []string) (proto.Message, form, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, form{}, status.Errorf(codes.InvalidArgument, "Invalid query: %v", err)
	}
	f, err := systemParameters(query)
	if err != nil {
		return nil, f, err
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBodyBytes))
	if err != nil {
		return nil, f, err
	}
	req := o.in.New().Interface()
	switch {
	case o.body != "":
		if err := o.readBody(req, body); err != nil {
			return nil, f, err
		}
	case len(bytes.TrimSpace(body)) > 0 && strings.TrimSpace(string(body)) != "{}":
		return nil, f, status.Errorf(codes.InvalidArgument, "Invalid JSON payload received. %s %s takes no body", r.Method, r.URL.Path)
	}
	for name, all := range query {
		if o.body == "*" {
			return nil, f, status.Errorf(codes.InvalidArgument, "Invalid JSON payload received. Unknown name %q: Cannot bind query parameter. All fields belong into the body.", name)
		}
		if err := setParameter(req, name, all); err != nil {
			return nil, f, err
		}
	}
	for i, field := range o.template.fields {
		if err := setParameter(req, field, values[i:i+1]); err != nil {
			return nil, f, err
		}
	}
	return req, f, nil
}

// stream writes the messages of a server stream as the elements of a JSON array. An error after
// the first message is the last element.
func (h *Handler) stream(w http.ResponseWriter, r *http.Request, o *route, req proto.Message, f form) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	next, err := h.open(ctx, o, req)
	if err != nil {
		WriteError(w, err)
		return
	}
	before := "["
	for {
		resp := o.out.New().Interface()
		err := next(resp)
		var text []byte
		switch {
		case errors.Is(err, io.EOF):
			if before == "[" {
				_, _ = io.WriteString(w, before)
			}
			_, _ = io.WriteString(w, "]\n")
			return
		case err == nil:
			text, err = f.marshal(resp)
		}
		if err != nil && before == "[" {
			WriteError(w, err)
			return
		}
		if err != nil {
			_, body := errorBody(err)
			_, _ = fmt.Fprintf(w, "%s%s]\n", before, bytes.TrimSpace(body))
			return
		}
		if _, err := fmt.Fprintf(w, "%s%s", before, text); err != nil {
			return // the client has gone
		}
		before = ",\n"
	}
}

// open starts a server stream, and returns a function that receives its next message.
func (h *Handler) open(ctx context.Context, o *route, req proto.Message) (func(any) error, error) {
	s, err := h.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, o.method)
	if err == nil {
		err = s.SendMsg(req)
	}
	if err == nil {
		err = s.CloseSend()
	}
	if err != nil {
		return nil, err
	}
	return s.RecvMsg, nil
}

// marshal returns the JSON of a message, in the same form each time.
func (f form) marshal(m proto.Message) ([]byte, error) {
	text, err := protojson.MarshalOptions{UseEnumNumbers: f.enumNumbers}.Marshal(m)
	if err != nil {
		return nil, status.Errorf(codes.Internal, "writing %s: %s", m.ProtoReflect().Descriptor().FullName(), jsonProblem(err))
	}
	var b bytes.Buffer
	if f.compact {
		err = json.Compact(&b, text)
	} else {
		err = json.Indent(&b, text, "", "  ")
	}
	return b.Bytes(), err
}

// WriteError answers with an error in Google's form.
func WriteError(w http.ResponseWriter, err error) {
	httpCode, body := errorBody(err)
	w.WriteHeader(httpCode)
	_, _ = w.Write(body)
}
