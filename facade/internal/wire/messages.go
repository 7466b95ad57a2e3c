package wire

// The texts about requests that are no calls, or not signed as they should be.
// The number behind a text is its row in facade/testdata/messages.tsv.
const (
	// MsgInvalidParameterPrefix begins what is wrong with a parameter.
	MsgInvalidParameterPrefix = "One or more parameter values were invalid: " // part of 17

	msgUnexpectedToken     = "Unexpected token received from parser"                                                                                                                                              // 245
	msgStartOfStructure    = "Start of structure or map found where not expected"                                                                                                                                 // 246
	msgUnexpectedFieldType = "Unexpected field type"                                                                                                                                                              // 247
	msgUnexpectedValueType = "Unexpected value type in payload"                                                                                                                                                   // 248
	msgRequestTooLarge     = "the request body has at least %d bytes, the limit is %d"                                                                                                                            // ours
	msgAuthTwice           = "Found both 'X-Amz-Algorithm' as a query-string param and 'Authorization' as HTTP header."                                                                                           // 249
	msgAuthMissing         = "Request is missing Authentication Token"                                                                                                                                            // 250
	msgAuthHeaderParameter = "Authorization header requires '%s' parameter."                                                                                                                                      // 251
	msgAuthDate            = "Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' header."                                                                                               // 252
	msgAuthQueryParameter  = "AWS query-string parameters must include '%s'."                                                                                                                                     // 253
	msgAuthQueryHint       = "Re-examine the query-string parameters."                                                                                                                                            // part of 253
	msgAuthAlgorithm       = "Unsupported AWS 'algorithm': '%s'."                                                                                                                                                 // 254
	msgAuthDateForm        = "Date must be in ISO-8601 'basic format'. Got '%s'."                                                                                                                                 // 255
	msgAuthScope           = "Credential must have exactly 5 slash-delimited elements, e.g. keyid/date/region/service/term, got '%s'"                                                                             // 256
	msgAuthScopeDate       = "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP: '%s' != '%s', from '%s'."                                                                 // 257
	msgAuthScopeRegion     = "Credential should be scoped to a valid region."                                                                                                                                     // 258
	msgAuthScopeService    = "Credential should be scoped to correct service: '%s'."                                                                                                                              // 259
	msgAuthScopeTerminator = "Credential should be scoped with a valid terminator: '%s', not '%s'."                                                                                                               // 260
	msgAuthHost            = "'Host' must be a 'SignedHeader' in the AWS Authorization."                                                                                                                          // 261
	msgAuthExpires         = "X-Amz-Expires should be a number of seconds, got '%s'"                                                                                                                              // ours
	msgAuthExpired         = "Signature expired: %s is now earlier than %s (%s - %s min.)"                                                                                                                        // 262
	msgAuthNotYet          = "Signature not yet current: %s is still later than %s (%s + %s min.)"                                                                                                                // 263
	msgAuthUnknownKey      = "The security token included in the request is invalid."                                                                                                                             // 264
	msgAuthMismatch        = "The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key and signing method. Consult the service documentation for details." // 265
	// MsgEmptyName is of the names of attributes in parameters from before
	// expressions too.
	MsgEmptyName = "Empty attribute name" // 121b
)
