package s3export

import (
	"crypto/md5" //nolint:gosec // the checksum that the format uses
	"encoding/base64"
	"errors"
	"io/fs"
	"path"
	"strings"
	"time"
)

// These are the names in an export. All exports of a bucket are below Folder, each in a folder
// named after its id, which contains the manifests, and the data files in DataFolder.
const (
	Folder      = "AWSDynamoDB"
	DataFolder  = "data"
	SummaryName = "manifest-summary.json"
	FilesName   = "manifest-files.json"
	StartedName = "_started"
)

// These are the manifest versions of full and of incremental exports.
const (
	VersionFull        = "2020-06-30"
	VersionIncremental = "2023-08-01"
)

// These are the types and the formats of exports.
const (
	TypeFull        = "FULL_EXPORT"
	TypeIncremental = "INCREMENTAL_EXPORT"

	FormatDynamoDBJSON = "DYNAMODB_JSON"
	FormatIon          = "ION"
)

// Summary is the content of manifest-summary.json. Its times have the format of Stamp. A full
// export has an ExportTime; an incremental export has the other two times.
type Summary struct {
	Version            string  `json:"version"`
	ExportArn          string  `json:"exportArn"`
	StartTime          string  `json:"startTime"`
	EndTime            string  `json:"endTime"`
	TableArn           string  `json:"tableArn"`
	TableID            string  `json:"tableId,omitzero"`
	ExportTime         string  `json:"exportTime,omitzero"`
	ExportFromTime     string  `json:"exportFromTime,omitzero"`
	ExportToTime       string  `json:"exportToTime,omitzero"`
	S3Bucket           string  `json:"s3Bucket,omitzero"`
	S3Prefix           *string `json:"s3Prefix"`
	S3SseAlgorithm     string  `json:"s3SseAlgorithm,omitzero"`
	S3SseKmsKeyID      *string `json:"s3SseKmsKeyId,omitzero"`
	ManifestFilesS3Key string  `json:"manifestFilesS3Key"`
	BilledSizeBytes    int64   `json:"billedSizeBytes"`
	ItemCount          *int64  `json:"itemCount"` // nil if the manifest does not have it
	OutputFormat       string  `json:"outputFormat"`
	ExportType         string  `json:"exportType"`
	OutputView         string  `json:"outputView,omitzero"` // for an incremental export
}

// File is a line of manifest-files.json, which describes a data file by its key in the bucket.
type File struct {
	ItemCount     *int64 `json:"itemCount"` // nil if the manifest does not have it
	MD5Checksum   string `json:"md5Checksum"`
	ETag          string `json:"etag"`
	DataFileS3Key string `json:"dataFileS3Key"`
}

// TableName returns the table name in an ARN. ok is false if the ARN does not have one.
func TableName(arn string) (name string, ok bool) {
	_, name, ok = strings.Cut(arn, ":table/")
	return name, ok
}

// DataPath returns the path of a data file, given its key in the bucket and the path dir of the
// export. The file must be below the folder of ManifestFilesS3Key or, for incremental exports,
// below the parent of that folder, which exports share. Any other key is an error.
func (s *Summary) DataPath(dir, key string) (string, error) {
	own := path.Dir(s.ManifestFilesS3Key)
	if s.ManifestFilesS3Key == "" { // the part behind AWSDynamoDB/
		if before, after, found := strings.Cut(key, Folder+"/"); found {
			id, _, _ := strings.Cut(after, "/")
			own = before + Folder + "/" + id
		}
	}
	for _, base := range [][2]string{{own, dir}, {path.Dir(own), path.Dir(dir)}} {
		rel, ok := strings.CutPrefix(key, base[0]+"/")
		if ok && fs.ValidPath(rel) && strings.HasPrefix(rel, DataFolder+"/") {
			return path.Join(base[1], rel), nil
		}
	}
	return "", errors.New(key + " is not in the " + DataFolder + " folder of this export")
}

// checksumSuffixes are the suffixes of the files that hold checksums of manifests. The tools
// of AWS and Writer use manifest-….md5, the guide has manifest-….checksum. An export may have
// either, or neither.
var checksumSuffixes = []string{".md5", ".checksum"}

// ChecksumNames returns the possible names of the file that holds the checksum of a manifest; see
// ChecksumOf.
func ChecksumNames(manifest string) []string {
	var names []string
	for _, suffix := range checksumSuffixes {
		names = append(names, strings.TrimSuffix(manifest, ".json")+suffix)
	}
	return names
}

// IsChecksum reports whether a file name is the name of a checksum file.
func IsChecksum(name string) bool {
	for _, suffix := range checksumSuffixes {
		if path.Ext(name) == suffix {
			return true
		}
	}
	return false
}

// ChecksumOf returns the MD5 of a file's contents in base64.
func ChecksumOf(text []byte) string {
	sum := md5.Sum(text) //nolint:gosec // see the import
	return Checksum(sum[:])
}

// Checksum returns an MD5 in the form that manifests use, base64.
func Checksum(sum []byte) string { return base64.StdEncoding.EncodeToString(sum) }

// Stamp returns a time in the form that manifests use: UTC, with milliseconds.
func Stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }
