package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/smithy-go/logging"

	"github.com/tabletop-emu/tabletop/migrate/stream"
)

// liveSourceFlags name the DynamoDB of the live tables.
type liveSourceFlags struct {
	DynamoDBEndpoint string `name:"dynamodb-endpoint" help:"DynamoDB endpoint with the live tables. Default: AWS." placeholder:"URL" group:"Live table:"`
	Region           string `help:"Region of the live tables. Default: from the AWS configuration; us-east-1 with --dynamodb-endpoint." placeholder:"NAME" group:"Live table:" rare:""`
}

// checkDynamoDB rejects an invalid address.
func (f *liveSourceFlags) checkDynamoDB() error {
	if f.DynamoDBEndpoint == "" {
		return nil
	}
	if u, err := url.Parse(f.DynamoDBEndpoint); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("--dynamodb-endpoint: %q must be a URL such as http://127.0.0.1:8000", f.DynamoDBEndpoint)
	}
	return nil
}

// localRegion is the region of an endpoint that the AWS configuration does not know.
const localRegion = "us-east-1"

// local reports whether the endpoint is on this machine.
func (f *liveSourceFlags) local() bool {
	u, err := url.Parse(f.DynamoDBEndpoint)
	return err == nil && isLoopback(net.JoinHostPort(u.Hostname(), u.Port()))
}

// sdkLog drops the warning that the end of a command causes: it leaves the answers that it waits for.
func sdkLog(to logging.Logger) logging.Logger {
	return logging.LoggerFunc(func(c logging.Classification, format string, args ...any) {
		if !strings.HasPrefix(format, "failed to discard remaining HTTP response body") {
			to.Logf(c, format, args...)
		}
	})
}

// connectDynamoDB returns clients with the credentials and the region of the AWS configuration. An
// endpoint on this machine needs neither.
func (f *liveSourceFlags) connectDynamoDB(ctx context.Context) (*dynamodb.Client, stream.Clients, error) {
	options := []func(*config.LoadOptions) error{config.WithRegion(f.Region), config.WithLogger(sdkLog(logging.NewStandardLogger(os.Stderr)))}
	local := f.local()
	if local { // the metadata server of a machine in AWS would only cost time
		options = append(options, config.WithEC2IMDSClientEnableState(imds.ClientDisabled))
	}
	c, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return nil, stream.Clients{}, badInput("the AWS configuration: %w", err)
	}
	if f.DynamoDBEndpoint != "" {
		c.BaseEndpoint = aws.String(f.DynamoDBEndpoint)
		if c.Region == "" {
			c.Region = localRegion
		}
	}
	if local {
		if _, err := c.Credentials.Retrieve(ctx); err != nil {
			c.Credentials = credentials.NewStaticCredentialsProvider("local", "local", "")
		}
	}
	if c.Region == "" {
		return nil, stream.Clients{}, badInput("name the region of the live tables: --region NAME, or AWS_REGION in the environment")
	}
	if client, ok := c.HTTPClient.(*awshttp.BuildableClient); ok && local { // to compress costs more than to send
		c.HTTPClient = client.WithTransportOptions(func(t *http.Transport) { t.DisableCompression = true })
	}
	tables := dynamodb.NewFromConfig(c)
	return tables, stream.Clients{Table: tables, Stream: dynamodbstreams.NewFromConfig(c)}, nil
}
