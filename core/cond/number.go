package cond

import (
	"cmp"
	"math"
	"math/big"
)

// isNumber reports whether value takes part in arithmetic comparison: True and
// False are 1 and 0.
func isNumber(value any) bool {
	switch value.(type) {
	case bool, int64, *big.Int, float64:
		return true
	}
	return false
}

// normalInteger returns value as int64 where it fits.
func normalInteger(value *big.Int) any {
	if value.IsInt64() {
		return value.Int64()
	}
	return value
}

// compareNumbers orders two numbers by their exact values, without rounding an
// integer to a float.
func compareNumbers(a, b any) int {
	switch a := integral(a).(type) {
	case int64:
		switch b := integral(b).(type) {
		case int64:
			return cmp.Compare(a, b)
		case *big.Int:
			return -b.Sign()
		case float64:
			return compareIntegerFloat(a, b)
		}
	case *big.Int:
		switch b := integral(b).(type) {
		case int64:
			return a.Sign()
		case *big.Int:
			return a.Cmp(b)
		case float64:
			return compareBigFloat(a, b)
		}
	case float64:
		switch b := integral(b).(type) {
		case float64:
			return cmp.Compare(a, b)
		default:
			return -compareNumbers(b, a)
		}
	}
	return 0
}

// integral turns a boolean into the integer that it is.
func integral(value any) any {
	switch value {
	case true:
		return int64(1)
	case false:
		return int64(0)
	}
	return value
}

// compareIntegerFloat compares the whole parts first: they are exact in int64.
func compareIntegerFloat(a int64, b float64) int {
	switch {
	case b >= 1<<63:
		return -1
	case b < -1<<63:
		return 1
	}
	whole := math.Trunc(b)
	if order := cmp.Compare(a, int64(whole)); order != 0 {
		return order
	}
	return cmp.Compare(whole, b)
}

func compareBigFloat(a *big.Int, b float64) int {
	if math.IsInf(b, 0) {
		return -cmp.Compare(b, 0)
	}
	// A big.Float takes the precision that its integer needs.
	return new(big.Float).SetInt(a).Cmp(big.NewFloat(b))
}

// negated returns -value of a number literal; of anything else value itself.
func negated(value any) any {
	switch v := value.(type) {
	case int64:
		return normalInteger(new(big.Int).Neg(big.NewInt(v)))
	case *big.Int:
		return normalInteger(new(big.Int).Neg(v))
	case float64:
		return -v
	}
	return value
}

// clampInteger returns an integer value as an int; one that no list or number of
// parents can reach becomes the nearest bound.
func clampInteger(value any) int {
	switch v := value.(type) {
	case int64:
		return int(min(max(v, math.MinInt32), math.MaxInt32))
	case *big.Int:
		return v.Sign() * math.MaxInt32
	}
	return 0
}

func isFloat(value any) bool {
	_, ok := value.(float64)
	return ok
}
