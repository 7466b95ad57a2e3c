package awserr

// Error texts for requests with a missing or wrong signature.
const (
	MsgAuthTwice           = "Found both 'X-Amz-Algorithm' as a query-string param and 'Authorization' as HTTP header."                                                                                           // row 249
	MsgAuthMissing         = "Request is missing Authentication Token"                                                                                                                                            // row 250
	MsgAuthHeaderParameter = "Authorization header requires '%s' parameter."                                                                                                                                      // row 251
	MsgAuthDate            = "Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' header."                                                                                               // row 252
	MsgAuthQueryParameter  = "AWS query-string parameters must include '%s'."                                                                                                                                     // row 253
	MsgAuthQueryHint       = "Re-examine the query-string parameters."                                                                                                                                            // part of row 253
	MsgAuthAlgorithm       = "Unsupported AWS 'algorithm': '%s'."                                                                                                                                                 // row 254
	MsgAuthDateForm        = "Date must be in ISO-8601 'basic format'. Got '%s'."                                                                                                                                 // row 255
	MsgAuthScope           = "Credential must have exactly 5 slash-delimited elements, e.g. keyid/date/region/service/term, got '%s'"                                                                             // row 256
	MsgAuthScopeDate       = "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP: '%s' != '%s', from '%s'."                                                                 // row 257
	MsgAuthScopeRegion     = "Credential should be scoped to a valid region."                                                                                                                                     // row 258
	MsgAuthScopeService    = "Credential should be scoped to correct service: '%s'."                                                                                                                              // row 259
	MsgAuthScopeTerminator = "Credential should be scoped with a valid terminator: '%s', not '%s'."                                                                                                               // row 260
	MsgAuthHost            = "'Host' must be a 'SignedHeader' in the AWS Authorization."                                                                                                                          // row 261
	MsgAuthExpires         = "X-Amz-Expires should be a number of seconds, got '%s'"                                                                                                                              // our own text
	MsgAuthExpired         = "Signature expired: %s is now earlier than %s (%s - %s min.)"                                                                                                                        // row 262
	MsgAuthNotYet          = "Signature not yet current: %s is still later than %s (%s + %s min.)"                                                                                                                // row 263
	MsgAuthUnknownKey      = "The security token included in the request is invalid."                                                                                                                             // row 264
	MsgAuthMismatch        = "The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key and signing method. Consult the service documentation for details." // row 265
)
