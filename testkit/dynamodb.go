package testkit

import (
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/credentials"
)

// clientConfig returns the configuration of the server's clients: they call it in this
// process, and retry without delay.
func (e *Env) clientConfig() aws.Config {
	return aws.Config{
		Region:       "us-east-1",
		BaseEndpoint: aws.String("http://tabletop.invalid"), // the transport ignores the host
		Credentials:  credentials.NewStaticCredentialsProvider("tabletop", "tabletop", ""),
		HTTPClient:   &http.Client{Transport: e.ddb},
		Retryer: func() aws.Retryer {
			return retry.NewStandard(func(o *retry.StandardOptions) {
				o.MaxAttempts = 4 // the default of the clients of DynamoDB, not of NewStandard
				o.Backoff = retry.BackoffDelayerFunc(func(int, error) (time.Duration, error) { return 0, nil })
			})
		},
	}
}
