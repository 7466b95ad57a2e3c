package tabledef

import "time"

// Provisioned is the provisioned throughput of a table or an index.
type Provisioned struct {
	ReadUnits  int64 `json:"readUnits,omitempty"`
	WriteUnits int64 `json:"writeUnits,omitempty"`
	// UnitChanges records the last changes of ReadUnits and WriteUnits.
	UnitChanges UnitChanges `json:"unitChanges,omitzero"`
	// Meanwhile is the throughput that the table appears to have until the last change is
	// complete.
	Meanwhile UnitsMeanwhile `json:"unitsMeanwhile,omitzero"`
}

// UnitChanges records when and how often the provisioned throughput changed.
type UnitChanges struct {
	// Increased and Decreased are the times of the last increase and decrease of either
	// unit. They are zero if there was none.
	Increased time.Time `json:"increased,omitzero"`
	Decreased time.Time `json:"decreased,omitzero"`
	// Decreases is the number of decreases on the day of Decreased, in UTC.
	Decreases int64 `json:"decreases,omitempty"`
}

// DecreasesOn returns the number of decreases on the day of a given time.
func (c UnitChanges) DecreasesOn(now time.Time) int64 {
	const day = "2006-01-02"
	if c.Decreased.UTC().Format(day) != now.UTC().Format(day) {
		return 0
	}
	return c.Decreases
}

// UnitsMeanwhile is the provisioned throughput that a table appears to have until a given
// time.
type UnitsMeanwhile struct {
	ReadUnits   int64       `json:"readUnits,omitempty"`
	WriteUnits  int64       `json:"writeUnits,omitempty"`
	UnitChanges UnitChanges `json:"unitChanges,omitzero"`
	Until       time.Time   `json:"until"`
}

// Change sets the units; 0 means on-demand. During the transition, the table shows the
// old units and the time of the call, and a decrease does not yet count for its day. If
// the billing mode changes, the table shows the new units immediately. After the
// transition, it shows the new units, with the end of the transition as the time of the
// change. Source: recordings of the service, dynalite 3.2.1.
func (p *Provisioned) Change(read, write int64, now time.Time, tr Transition) {
	shown := UnitsMeanwhile{ReadUnits: p.ReadUnits, WriteUnits: p.WriteUnits, UnitChanges: p.UnitChanges, Until: tr.Until}
	if p.ReadUnits == 0 || read == 0 {
		shown.ReadUnits, shown.WriteUnits = read, write
	}
	done := now
	if tr.Lasts(now) {
		done = tr.Until
	}
	if read > p.ReadUnits || write > p.WriteUnits {
		shown.UnitChanges.Increased, p.UnitChanges.Increased = now, done
	}
	if read < p.ReadUnits || write < p.WriteUnits {
		shown.UnitChanges.Decreased, shown.UnitChanges.Decreases = now, p.UnitChanges.DecreasesOn(now)
		p.UnitChanges.Decreased, p.UnitChanges.Decreases = done, p.UnitChanges.DecreasesOn(done)+1
	}
	p.ReadUnits, p.WriteUnits, p.Meanwhile = read, write, UnitsMeanwhile{}
	if tr.Lasts(now) {
		p.Meanwhile = shown
	}
}

// at returns the apparent throughput at a given time.
func (p Provisioned) at(now time.Time) Provisioned {
	if m := p.Meanwhile; now.Before(m.Until) {
		p.ReadUnits, p.WriteUnits, p.UnitChanges = m.ReadUnits, m.WriteUnits, m.UnitChanges
	}
	return p
}
