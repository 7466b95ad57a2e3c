package tabledef

// Insights holds the contributor insights settings of a table or an index.
type Insights struct {
	Enabled bool `json:"enabled,omitempty"`
	// Mode is ACCESSED_AND_THROTTLED_KEYS or THROTTLED_KEYS.
	Mode string `json:"mode"`
	// Changed is the time of the last change in milliseconds since 1970.
	Changed int64 `json:"changed"`
	// Transition is the status that the insights appear to have after a change.
	Transition Transition `json:"transition,omitzero"`
}
