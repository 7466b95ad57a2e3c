package facade_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/emu"
	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/facade"
	"github.com/tabletop-emu/tabletop/facade/awserr"
)

const songs = `{"TableName": "songs", "BillingMode": "PAY_PER_REQUEST",
	"KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
	"AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}]}`

// An AWS client over a Bigtable, without a port.
func Example() {
	ctx := context.Background()
	conn, closeBigtable := bigtable()
	defer closeBigtable()

	server, err := facade.New(ctx, facade.Options{Conn: conn})
	must(err)
	defer func() { must(server.Close()) }()
	_, err = server.Call(ctx, "CreateTable", []byte(songs))
	must(err)

	client := dynamodb.New(dynamodb.Options{
		Region:       facade.DefaultRegion,
		BaseEndpoint: aws.String("http://dynamodb"), // the transport ignores it
		Credentials:  credentials.NewStaticCredentialsProvider("any", "any", ""),
		HTTPClient:   &http.Client{Transport: server.RoundTripper()},
	})
	item := map[string]types.AttributeValue{
		"id": &types.AttributeValueMemberS{Value: "0001"}, "title": &types.AttributeValueMemberS{Value: "Blue in Green"},
	}
	_, err = client.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String("songs"), Item: item})
	must(err)
	got, err := client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: aws.String("songs"), Key: map[string]types.AttributeValue{"id": item["id"]},
	})
	must(err)
	fmt.Println(got.Item["title"].(*types.AttributeValueMemberS).Value)
	// Output: Blue in Green
}

// An HTTP endpoint that accepts requests without a signature.
func ExampleServer_ServeHTTP() {
	ctx := context.Background()
	conn, closeBigtable := bigtable()
	defer closeBigtable()

	server, err := facade.New(ctx, facade.Options{Conn: conn, NoAuth: true})
	must(err)
	defer func() { must(server.Close()) }()
	endpoint := httptest.NewServer(server) // in a program: http.ListenAndServe(":8000", server)
	defer endpoint.Close()

	post := func(operation, body string) string {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint.URL, strings.NewReader(body))
		must(err)
		r.Header.Set("Content-Type", "application/x-amz-json-1.0")
		r.Header.Set("X-Amz-Target", "DynamoDB_20120810."+operation)
		answer, err := endpoint.Client().Do(r)
		must(err)
		text, err := io.ReadAll(answer.Body)
		must(errors.Join(err, answer.Body.Close()))
		return string(text)
	}
	post("CreateTable", songs)
	post("PutItem", `{"TableName": "songs", "Item": {"id": {"S": "0001"}, "title": {"S": "Blue in Green"}}}`)
	fmt.Println(post("GetItem", `{"TableName": "songs", "Key": {"id": {"S": "0001"}}}`))
	// Output: {"Item":{"id":{"S":"0001"},"title":{"S":"Blue in Green"}}}
}

// A call of one operation without HTTP, which returns the error of DynamoDB.
func ExampleServer_Call() {
	ctx := context.Background()
	conn, closeBigtable := bigtable()
	defer closeBigtable()

	server, err := facade.New(ctx, facade.Options{Conn: conn})
	must(err)
	defer func() { must(server.Close()) }()
	_, err = server.Call(ctx, "GetItem", []byte(`{"TableName": "songs", "Key": {"id": {"S": "0001"}}}`))
	var refused *awserr.Error
	if errors.As(err, &refused) {
		fmt.Println(refused.Code)
	}
	// Output: ResourceNotFoundException
}

// bigtable returns a connection to the Bigtable of the endpoint, here an emulator in this
// process. Use grpc.NewClient to connect to another emulator, or to Cloud Bigtable.
func bigtable() (conn grpc.ClientConnInterface, closeAll func()) {
	db, err := engine.Open(engine.Options{})
	must(err)
	srv, err := emu.New(emu.Options{DB: db})
	must(err)
	return srv.Conn(), func() { must(errors.Join(srv.Close(), db.Close())) }
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
