package facade

// The store is the seam between operations, which think in items, and the
// Bigtable behind them, which holds rows. Operations never see a row; the
// store never sees an expression or a request.
