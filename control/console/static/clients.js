// Client code that finds the endpoints, in each language.

/**
 * clientCode returns the code of each language: { language: [[endpoint, code]] }. An endpoint accepts any credentials,
 * and clients require some.
 */
export function clientCode(info) {
  const { bigtable: bt, dynamodb: ddb, project, instance } = info;
  const [host, port] = [bt?.slice(0, bt.lastIndexOf(':')), bt?.slice(bt.lastIndexOf(':') + 1)];
  const of = (bigtable, dynamodb) => [bt && ['Bigtable', bigtable], ddb && ['DynamoDB', dynamodb]].filter(Boolean);
  return {
    Shell: of(`export BIGTABLE_EMULATOR_HOST=${bt} # for the clients of all languages
cbt -project ${project} -instance ${instance} ls`, `export AWS_ENDPOINT_URL_DYNAMODB=${ddb} AWS_REGION=us-east-1 AWS_DEFAULT_REGION=us-east-1
export AWS_ACCESS_KEY_ID=tabletop AWS_SECRET_ACCESS_KEY=tabletop
aws dynamodb list-tables`),
    Go: of(`os.Setenv("BIGTABLE_EMULATOR_HOST", "${bt}")
client, err := bigtable.NewClient(ctx, "${project}", "${instance}")`, `client := dynamodb.New(dynamodb.Options{
	BaseEndpoint: aws.String("${ddb}"),
	Region:       "us-east-1",
	Credentials:  credentials.NewStaticCredentialsProvider("tabletop", "tabletop", ""),
})`),
    Java: of(`BigtableDataClient client = BigtableDataClient.create(
    BigtableDataSettings.newBuilderForEmulator("${host}", ${port})
        .setProjectId("${project}")
        .setInstanceId("${instance}")
        .build());`, `DynamoDbClient client = DynamoDbClient.builder()
    .endpointOverride(URI.create("${ddb}"))
    .region(Region.US_EAST_1)
    .credentialsProvider(StaticCredentialsProvider.create(
        AwsBasicCredentials.create("tabletop", "tabletop")))
    .build();`),
    Python: of(`import os
from google.cloud import bigtable

os.environ["BIGTABLE_EMULATOR_HOST"] = "${bt}"
instance = bigtable.Client(project="${project}", admin=True).instance("${instance}")`, `import boto3

client = boto3.client(
    "dynamodb",
    endpoint_url="${ddb}",
    region_name="us-east-1",
    aws_access_key_id="tabletop",
    aws_secret_access_key="tabletop",
)`),
    JavaScript: of(`import { Bigtable } from "@google-cloud/bigtable";

process.env.BIGTABLE_EMULATOR_HOST = "${bt}";
const instance = new Bigtable({ projectId: "${project}" }).instance("${instance}");`, `import { DynamoDBClient } from "@aws-sdk/client-dynamodb";

const client = new DynamoDBClient({
  endpoint: "${ddb}",
  region: "us-east-1",
  credentials: { accessKeyId: "tabletop", secretAccessKey: "tabletop" },
});`),
  };
}
