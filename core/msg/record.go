package msg

import (
	"encoding/json"

	"jobq/core/fault"
)

// EncodeRecord returns the body of an attempt record.
func EncodeRecord(r AttemptRecord) ([]byte, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "the attempt record cannot be written as JSON")
	}
	return body, nil
}

// DecodeRecord reads what EncodeRecord wrote. Fails with fault.Corrupt.
func DecodeRecord(body []byte) (AttemptRecord, error) {
	var r AttemptRecord
	if err := json.Unmarshal(body, &r); err != nil {
		return AttemptRecord{}, fault.Wrap(fault.Corrupt, err, "the attempt record cannot be read")
	}
	return r, nil
}
