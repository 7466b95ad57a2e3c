package tabledef

// Insights says that the keys of a table or an index are watched, or were.
type Insights struct {
	Enabled bool `json:"enabled,omitempty"`
	// Mode is ACCESSED_AND_THROTTLED_KEYS or THROTTLED_KEYS.
	Mode string `json:"mode"`
	// Changed is the time of the last change in milliseconds since 1970.
	Changed int64 `json:"changed"`
	// Transition is what the change looks like for a while.
	Transition Transition `json:"transition,omitzero"`
}
