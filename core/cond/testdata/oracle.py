"""Answers conditions with Python's own operators, one JSON request a line.

{"expr": text, "outputs": {parent: JSON text or null}} -> true, false, reject,
or error with the names that it hangs on.
{"pattern": text, "names": [text]} -> a text of one 0 or 1 per name.
"""

import ast
import fnmatch
import io
import json
import operator
import re
import sys
import tokenize

CONSTANTS = {"true": True, "false": False, "null": None}
ORDER = {ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge}
AGGREGATE = re.compile(r"\b(all|any|count|almost_all)\s*\(")
MATCH = object()  # what an error hangs on that hangs on the matched input


class Problem(Exception):
    def __init__(self, tags):
        super().__init__()
        self.tags = tags


class Object(dict):
    """A JSON object whose keys are attributes, whatever they are called."""

    def __getattribute__(self, name):
        if name in self:
            return self[name]
        raise AttributeError(name)


class Inputs:
    def __init__(self, outputs):
        self.outputs = outputs

    def __getattr__(self, name):
        return self.outputs[name]

    def __getitem__(self, name):
        return self.outputs[name]


def expand_star(text):
    """Writes inputs["*"] for inputs.*, but not inside texts."""
    if "*" not in text:
        return text
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    skipped = (tokenize.NL, tokenize.COMMENT)
    tokens = [t for t in tokenize.generate_tokens(io.StringIO(text).readline) if t.type not in skipped]
    pieces, done = [], (1, 0)
    lines = list(io.StringIO(text))

    def upto(end):
        nonlocal done
        (row, column), (last, stop) = done, end
        if row == last:
            pieces.append(lines[row - 1][column:stop] if row <= len(lines) else "")
        else:
            pieces.append(lines[row - 1][column:])
            pieces.extend(lines[row:last - 1])
            if last <= len(lines):
                pieces.append(lines[last - 1][:stop])
        done = end

    for name, dot, star in zip(tokens, tokens[1:], tokens[2:]):
        if (name.string, dot.string, star.string) == ("inputs", ".", "*"):
            upto(name.end)
            pieces.append('["*"]')
            done = star.end
    upto((len(lines), len(lines[-1])) if lines else (1, 0))
    return "".join(pieces)


class Walk:
    """Evaluates a tree to pairs of a value and what the value hangs on."""

    def __init__(self, outputs):
        self.outputs = outputs

    def __call__(self, node, match=None):
        return getattr(self, type(node).__name__)(node, match)

    def Constant(self, node, match):
        return node.value, set()

    def Name(self, node, match):
        return CONSTANTS[node.id], set()

    def UnaryOp(self, node, match):
        value, tags = self(node.operand, match)
        if isinstance(node.op, ast.Not):
            return not value, tags
        return (-value if isinstance(node.op, ast.USub) else +value), tags

    def items(self, node, match):
        pairs = [self(item, match) for item in node.elts]
        return [value for value, _ in pairs], set().union(*(tags for _, tags in pairs))

    def List(self, node, match):
        return self.items(node, match)

    def Tuple(self, node, match):
        values, tags = self.items(node, match)
        return tuple(values), tags

    def BoolOp(self, node, match):
        tags = set()
        for operand in node.values:
            value, more = self(operand, match)
            tags = tags | more
            if bool(value) == isinstance(node.op, ast.Or):
                break
        return value, tags

    def Compare(self, node, match):
        left, left_tags = self(node.left, match)
        tags = left_tags
        for op, operand in zip(node.ops, node.comparators):
            right, right_tags = self(operand, match)
            tags = tags | right_tags
            try:
                answer = self.compare(op, left, right)
            except TypeError:
                raise Problem(self.culprits(op, left, left_tags, right, right_tags)) from None
            if not answer:
                break
            left, left_tags = right, right_tags
        return answer, tags

    @staticmethod
    def compare(op, left, right):
        if isinstance(op, ast.Eq):
            return left == right
        if isinstance(op, ast.NotEq):
            return left != right
        if isinstance(op, ast.In):
            return left in right
        if isinstance(op, ast.NotIn):
            return left not in right
        return ORDER[type(op)](left, right)

    @staticmethod
    def culprits(op, left, left_tags, right, right_tags):
        """Whoever could not be right with any partner; else both."""
        if isinstance(op, (ast.In, ast.NotIn)):
            if isinstance(right, str):
                return left_tags | right_tags
            return left_tags if isinstance(right, dict) else right_tags
        while True:
            if not (type(left) is type(right) and isinstance(left, (list, tuple))):
                break
            left, right = next((a, b) for a, b in zip(left, right) if a != b)
        never = [value is None or isinstance(value, dict) for value in (left, right)]
        if not any(never):
            never = [True, True]
        return (left_tags if never[0] else set()) | (right_tags if never[1] else set())

    def Attribute(self, node, match):
        return self.access(node, node.value, node.attr, False, match)

    def Subscript(self, node, match):
        return self.access(node, node.value, ast.literal_eval(node.slice), True, match)

    def access(self, node, owner, key, bracket, match):
        if isinstance(owner, ast.Name) and owner.id == "inputs":
            if is_pattern(node, self.outputs):
                return match, {MATCH}
            return self.outputs[key], {key}
        value, tags = self(owner, match)
        try:
            return (value[key] if bracket else getattr(value, key)), tags
        except (AttributeError, LookupError, TypeError):
            raise Problem(tags) from None

    def Call(self, node, _):
        pattern = next(n for n in ast.walk(node.args[0]) if is_pattern(n, self.outputs))
        satisfied = failed = 0
        for name, output in self.outputs.items():
            if not fnmatch.fnmatchcase(name, pattern.slice.value):
                continue
            try:
                holds = bool(self(node.args[0], output)[0])
            except Problem as problem:
                if MATCH not in problem.tags:
                    raise
                holds = False
            satisfied += holds
            failed += not holds
        limit = node.args[1].value if len(node.args) > 1 else 0
        return {
            "all": failed == 0, "any": satisfied > 0, "count": satisfied, "almost_all": failed <= limit,
        }[node.func.id], set()


def is_pattern(node, outputs):
    return (
        isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Name)
        and node.value.id == "inputs"
        and any(c in node.slice.value for c in "*?[")
        and node.slice.value not in outputs
    )


def load(text):
    return None if text is None else json.loads(text, object_hook=Object)


def answer(request):
    text = request["expr"]
    outputs = {name: load(output) for name, output in sorted(request["outputs"].items())}
    try:
        # Python wants no blanks and comments in front; they mean nothing.
        tree = ast.parse(expand_star(re.sub(r"\A(\s|#[^\r\n]*[\r\n])*", "", text)).strip(), mode="eval")
    except (SyntaxError, tokenize.TokenError) as problem:
        return f"reject {problem}"
    try:
        value = bool(Walk(outputs)(tree.body)[0])
        verdict = "true" if value else "false"
    except Problem as problem:
        verdict = " ".join(["error", *map(json.dumps, sorted(problem.tags))])
    if not AGGREGATE.search(text):
        # No aggregate: Python evaluates the very text, and must agree with Walk.
        try:
            plain = "true" if eval(compile(tree, "condition", "eval"), {"inputs": Inputs(outputs), **CONSTANTS}) else "false"
        except (TypeError, AttributeError, LookupError):
            plain = "error"
        if plain != verdict.split(" ")[0]:
            return f"the oracle contradicts itself: {plain}, {verdict}"
    return verdict


def matches(request):
    return "".join(str(int(fnmatch.fnmatchcase(name, request["pattern"]))) for name in request["names"])


for line in sys.stdin:
    request = json.loads(line)
    sys.stdout.write((matches if "pattern" in request else answer)(request) + "\n")
