package wire

// The texts about requests that are no calls, or not signed as they should be.
const (
	msgUnexpectedToken     = "Unexpected token received from parser"
	msgStartOfStructure    = "Start of structure or map found where not expected"
	msgUnexpectedFieldType = "Unexpected field type"
	msgUnexpectedValueType = "Unexpected value type in payload"
	msgRequestTooLarge     = "the request body has at least %d bytes, the limit is %d"
	msgAuthTwice           = "Found both 'X-Amz-Algorithm' as a query-string param and 'Authorization' as HTTP header."
	msgAuthMissing         = "Request is missing Authentication Token"
	msgAuthHeaderParameter = "Authorization header requires '%s' parameter."
	msgAuthDate            = "Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' header."
	msgAuthQueryParameter  = "AWS query-string parameters must include '%s'."
	msgAuthQueryHint       = "Re-examine the query-string parameters."
	msgAuthAlgorithm       = "Unsupported AWS 'algorithm': '%s'."
	msgAuthDateForm        = "Date must be in ISO-8601 'basic format'. Got '%s'."
	msgAuthScope           = "Credential must have exactly 5 slash-delimited elements, e.g. keyid/date/region/service/term, got '%s'"
	msgAuthScopeDate       = "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP: '%s' != '%s', from '%s'."
	msgAuthScopeRegion     = "Credential should be scoped to a valid region."
	msgAuthScopeService    = "Credential should be scoped to correct service: '%s'."
	msgAuthScopeTerminator = "Credential should be scoped with a valid terminator: '%s', not '%s'."
	msgAuthHost            = "'Host' must be a 'SignedHeader' in the AWS Authorization."
	msgAuthExpires         = "X-Amz-Expires should be a number of seconds, got '%s'" // ours
	msgAuthExpired         = "Signature expired: %s is now earlier than %s (%s - %s min.)"
	msgAuthNotYet          = "Signature not yet current: %s is still later than %s (%s + %s min.)"
	msgAuthUnknownKey      = "The security token included in the request is invalid."
	msgAuthMismatch        = "The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key and signing method. Consult the service documentation for details."
	msgEmptyName           = "Empty attribute name"
)
