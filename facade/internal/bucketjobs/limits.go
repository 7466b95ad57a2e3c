package bucketjobs

import "time"

// The limits of the API model.
const (
	maxARN         = 1024
	minJobARN      = 37
	maxBucketChars = 255
	maxPrefixChars = 1024
	maxKMSKeyChars = 2048
	maxCSVHeaders  = 255
	maxPage        = 25
	defaultPage    = 10
)

// The periods of incremental exports.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_IncrementalExportSpecification.html
const (
	minPeriod = 15 * time.Minute
	maxPeriod = 24 * time.Hour

	// recoveryLag is the minimum age of the latest time that a request can name.
	recoveryLag = 5 * time.Minute
)

// maxLogged limits the lines in the log of an import.
const maxLogged = 10_000

// The patterns of members in the API model, in the form in which error texts quote them.
const (
	bucketName   = `^[a-z0-9A-Z]+[\.\-\w]*[a-z0-9A-Z]+$`
	bucketOwner  = `[0-9]{12}`
	clientToken  = `^[^\$]+$`
	csvDelimiter = `[,;:|\t ]`
)
