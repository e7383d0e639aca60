package cond

import (
	"fmt"
	"reflect"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/checker"
	"github.com/expr-lang/expr/compiler"
	"github.com/expr-lang/expr/conf"
	exprparser "github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/vm"
)

// emit translates an expression into a program of expr-lang. The translation
// uses three things of expr-lang: conditional expressions for whatever may be
// left unevaluated, the loop of count for aggregates, and calls of the functions
// below for all the rest. A node is named to a function by its number; constants
// are passed as values.
func (p *Program) emit() (*vm.Program, error) {
	tree := &exprparser.Tree{Node: p.translate(p.expression.root)}
	// The configuration holds a cache that compiling writes to, so it is not shared.
	config := &conf.Config{Functions: functions, ShortCircuit: true, Strict: true}
	if _, err := checker.Check(tree, config); err != nil {
		return nil, fmt.Errorf("check the program of a condition: %w", err)
	}
	code, err := compiler.Compile(tree, config)
	if err != nil {
		return nil, fmt.Errorf("compile the program of a condition: %w", err)
	}
	return code, nil
}

// translate returns the node of expr-lang that computes n.
func (p *Program) translate(n node) ast.Node {
	switch n := n.(type) {
	case *literal:
		return &ast.ConstantNode{Value: n.value}
	case *sequence:
		if value, ok := constantValue(n); ok {
			return &ast.ConstantNode{Value: value}
		}
		items := make([]ast.Node, 0, len(n.items))
		for _, item := range n.items {
			items = append(items, p.translate(item))
		}
		return call("sequence", n, items...)
	case *reference:
		if p.resolved[n.slot].pattern {
			return call("match", n, &ast.PointerNode{})
		}
		return call("load", n)
	case *negation:
		return call("negate", n, p.translate(n.operand))
	case *logical:
		return p.translateLogical(n)
	case *comparison:
		return p.translateComparison(n)
	case *aggregate:
		loop := &ast.BuiltinNode{Name: "count", Arguments: []ast.Node{
			call("members", n),
			&ast.PredicateNode{Node: call("satisfied", n, p.translate(n.condition))},
		}}
		return call("total", n, loop)
	}
	// The parser makes no other nodes; the checker refuses a nil node.
	return nil
}

// constantValue returns the value of a literal, or of a list or tuple of them.
func constantValue(n node) (any, bool) {
	switch n := n.(type) {
	case *literal:
		return n.value, true
	case *sequence:
		items := make([]any, 0, len(n.items))
		for _, item := range n.items {
			value, ok := constantValue(item)
			if !ok {
				return nil, false
			}
			items = append(items, value)
		}
		return n.value(items), true
	}
	return nil, false
}

// translateLogical nests one conditional per operand but the last: go on, or
// stop with the value of the operand, which is the value of the whole.
func (p *Program) translateLogical(n *logical) ast.Node {
	goesOn := "whenTrue"
	if n.or {
		goesOn = "whenFalse"
	}
	last := len(n.operands) - 1
	rest := p.translate(n.operands[last])
	for i := last - 1; i >= 0; i-- {
		operand := n.operands[i]
		rest = &ast.ConditionalNode{
			Cond: call(goesOn, operand, p.translate(operand)),
			Exp1: rest,
			Exp2: call("result", operand),
		}
	}
	return rest
}

// translateComparison does the same for the links of a chain. From the second on
// a link takes its left operand from the results, where the link before it has
// put it.
func (p *Program) translateComparison(n *comparison) ast.Node {
	var rest ast.Node
	for i := len(n.links) - 1; i >= 0; i-- {
		l := n.links[i]
		left := call("result", l.left)
		if i == 0 {
			left = p.translate(l.left)
		}
		compared := call("compare", l, left, p.translate(l.right))
		if rest == nil {
			rest = compared
			continue
		}
		rest = &ast.ConditionalNode{
			Cond: call("whenTrue", l, compared),
			Exp1: rest,
			Exp2: call("result", l),
		}
	}
	return rest
}

// call calls a function below: the evaluation, the number of the node, operands.
func call(name string, n node, operands ...ast.Node) ast.Node {
	arguments := append([]ast.Node{
		&ast.IdentifierNode{Value: "$env"},
		&ast.IntegerNode{Value: n.number()},
	}, operands...)
	return &ast.CallNode{Callee: &ast.IdentifierNode{Value: name}, Arguments: arguments}
}

// functions are what a program may call.
var functions = conf.FunctionsTable{
	"load":      define("load", 0, anyType, func(e *evaluation, id int, _ []any) any { return e.load(id) }),
	"match":     define("match", 1, anyType, func(e *evaluation, id int, in []any) any { return e.match(id, in[0].(int)) }),
	"result":    define("result", 0, anyType, func(e *evaluation, id int, _ []any) any { return e.results[id] }),
	"sequence":  define("sequence", variadic, anyType, (*evaluation).sequence),
	"negate":    define("negate", 1, anyType, func(e *evaluation, id int, in []any) any { return e.negate(id, in[0]) }),
	"compare":   define("compare", 2, anyType, func(e *evaluation, id int, in []any) any { return e.compare(id, in[0], in[1]) }),
	"whenTrue":  define("whenTrue", 1, boolType, func(e *evaluation, id int, in []any) any { return e.decide(id, in[0], true) }),
	"whenFalse": define("whenFalse", 1, boolType, func(e *evaluation, id int, in []any) any { return e.decide(id, in[0], false) }),
	"members":   define("members", 0, anyType, func(e *evaluation, id int, _ []any) any { return e.members(id) }),
	"satisfied": define("satisfied", 1, boolType, func(e *evaluation, id int, in []any) any { return e.satisfied(id, in[0]) }),
	"total":     define("total", 1, anyType, func(e *evaluation, id int, in []any) any { return e.total(id, in[0].(int)) }),
}

// variadic stands for any number of operands.
const variadic = -1

var (
	anyType  = reflect.TypeFor[any]()
	boolType = reflect.TypeFor[bool]()
)

// define makes a function of expr-lang out of one of an evaluation. It takes one
// step of the evaluation's budget, and ends the run when the budget is used up.
func define(name string, operands int, result reflect.Type, apply func(e *evaluation, id int, operands []any) any) *builtin.Function {
	return &builtin.Function{
		Name: name,
		Func: func(arguments ...any) (any, error) {
			e, id := arguments[0].(*evaluation), arguments[1].(int)
			e.meter.spend(1)
			value := apply(e, id, arguments[2:])
			if e.meter.left < 0 {
				return nil, &exhausted{id}
			}
			return value, nil
		},
		Validate: func(arguments []reflect.Type) (reflect.Type, error) {
			if operands != variadic && len(arguments) != operands+2 {
				return nil, fmt.Errorf("%s has %d operands, not %d", name, operands, len(arguments)-2)
			}
			return result, nil
		},
	}
}
