package cond

// span is the part of the source, in bytes, that a node was read from, without
// parentheses around it.
type span struct {
	start, end int
}

// node is a part of an expression. Nodes are numbered in the order in which
// they were built; an evaluation keeps results by that number.
type node interface {
	place() span
	number() int
}

// base is what every node has.
type base struct {
	span
	id int
}

func (b *base) place() span { return b.span }
func (b *base) number() int { return b.id }

// literal is a number, a text, True, False or None.
type literal struct {
	base
	value any
}

// sequence is a list or tuple display.
type sequence struct {
	base
	items []node
	tuple bool
}

// value makes the list or tuple out of its items.
func (s *sequence) value(items []any) any {
	if s.tuple {
		return tuple(items)
	}
	return list(items)
}

// step is one access below an output: a key of an object, or an index.
type step struct {
	key     string
	index   int
	indexed bool
	dotted  bool
}

// reference is an access to the outputs of one parent, or inside an aggregate
// to those of every parent that a pattern matches.
type reference struct {
	base
	// name is the name or pattern as written; star is the shorthand inputs.*,
	// dotted is a name after a dot, which is never a pattern.
	name         string
	star, dotted bool
	path         []step
	// slot numbers the references of an expression in source order.
	slot int
	// within is the aggregate around the reference, or nil.
	within *aggregate
	// misspelled says what is wrong with a name after a dot; the parser reports
	// it when it has read the whole reference.
	misspelled string
}

// negation is "not operand".
type negation struct {
	base
	operand node
}

// logical is a chain of "and" or of "or", with two operands or more.
type logical struct {
	base
	or       bool
	operands []node
}

// operator is a comparison operator.
type operator uint8

const (
	equals operator = iota
	unequal
	less
	lessOrEqual
	greater
	greaterOrEqual
	isIn
	notIn
)

// operatorTexts spells the operators as in the source.
var operatorTexts = [...]string{"==", "!=", "<", "<=", ">", ">=", "in", "not in"}

func (o operator) String() string { return operatorTexts[o] }

// link is one comparison of a chain. The right operand of a link is the left
// operand of the next and is evaluated once.
type link struct {
	base
	operator    operator
	left, right node
}

// comparison is a chain of at least one link.
type comparison struct {
	base
	links []*link
}

// function is the name of an aggregate function.
type function string

const (
	all       function = "all"
	anyOf     function = "any"
	count     function = "count"
	almostAll function = "almost_all"
)

// aggregate applies a condition to every parent that the pattern in it matches.
type aggregate struct {
	base
	function  function
	condition node
	// limit is how many inputs may fail the condition of almost_all.
	limit int
	// slot numbers the aggregates of an expression in source order.
	slot       int
	references []*reference
}

// operands returns the parts that n was made of, in the order of the source.
func operands(n node) []node {
	switch n := n.(type) {
	case *sequence:
		return n.items
	case *negation:
		return []node{n.operand}
	case *logical:
		return n.operands
	case *link:
		return []node{n.left, n.right}
	case *comparison:
		parts := []node{n.links[0].left}
		for _, l := range n.links {
			parts = append(parts, l.right)
		}
		return parts
	case *aggregate:
		return []node{n.condition}
	}
	return nil
}
