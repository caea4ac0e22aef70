"""Finds code that changes group state outside of the replay room, by the types that mypy finds.

Group state is ``GroupState`` and whatever of ``coordinator.core.state`` its fields lead to. It is
changed by an assignment to a field or to a place in one, by ``del``, by a method of a container
(``add``, ``pop``, ...), and by a method of its own that does any of these. An alias is followed
within its function, not into a call that it is handed to.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from mypy.build import BuildResult, BuildSource, build
from mypy.config_parser import parse_config_file
from mypy.find_sources import create_source_list
from mypy.nodes import (
    Argument,
    AssignmentStmt,
    CallExpr,
    ClassDef,
    ConditionalExpr,
    DelStmt,
    Expression,
    ForStmt,
    FuncDef,
    IndexExpr,
    ListExpr,
    MemberExpr,
    MypyFile,
    NameExpr,
    Node,
    OperatorAssignmentStmt,
    OpExpr,
    SliceExpr,
    StarExpr,
    Statement,
    TupleExpr,
    TypeInfo,
    Var,
)
from mypy.options import Options
from mypy.patterns import Pattern
from mypy.types import Instance, TupleType, Type, UnionType, get_proper_type

from tests.groups import CHECKOUT

STATE_ROOM: Final = "coordinator.core.state."
REPLAY_ROOM: Final = "coordinator.core.replay."
GROUP_STATE: Final = "coordinator.core.state.shard.GroupState"
SHARD: Final = "coordinator.core.state.shard.Shard"
SOFT: Final = frozenset(
    {
        "coordinator.core.state.classic.classic_group.UpgradeChecks",
        "coordinator.core.state.consumer.consumer_member.SubscribedTopicsCache",
        "coordinator.core.state.reset_of_group.NumbersCache",
        "coordinator.core.state.open_transactions.Timeout",
    }
)
"""Kept with a group or a transaction, and gone with it, but no state."""

CONTAINER_CHANGES: Final = frozenset(
    {
        *("add", "append", "appendleft", "byteswap", "clear", "difference_update", "discard"),
        *("extend", "fill", "fromlist", "insert", "intersection_update", "itemset", "move_to_end"),
        *("pop", "popitem", "popleft", "put", "remove", "resize", "reverse", "setdefault", "sort"),
        *("symmetric_difference_update", "update", "__delitem__", "__setitem__"),
    }
)
FUNCTION_CHANGES: Final = frozenset(
    {"delattr", "heapify", "heappop", "heappush", "heappushpop", "heapreplace", "setattr"}
)
"""Functions that change their first argument."""
SAME_METHODS: Final = frozenset({"get", "items", "setdefault", "values"})
SAME_FUNCTIONS: Final = frozenset({"enumerate", "frombuffer", "iter", "next", "reversed", "zip"})
"""Calls by which what is in a container is got, or its memory under another name."""
REFERENCES: Final = frozenset(
    {"analyzed", "expanded", "info", "node", "original_def", "setter", "type", "unanalyzed_items"}
)
IN_PLACE: Final = {"+": "__iadd__", "-": "__isub__", "&": "__iand__", "|": "__ior__"}
MAKERS: Final = frozenset({"__init__", "__post_init__", "__new__"})


@dataclass(frozen=True, slots=True, order=True)
class Change:
    """Where group state is changed, and what of it."""

    module: str
    line: int
    what: str


@dataclass(slots=True)
class Known:
    """What mypy found, the classes of group state, and which of their methods change them."""

    types: Mapping[Expression, Type]
    classes: Mapping[str, TypeInfo]
    shard_fields: frozenset[str]
    changing: set[str] = field(default_factory=set)

    def classes_of(self, expression: Expression) -> Iterator[TypeInfo]:
        """The classes that the value of an expression may have."""
        found = self.types.get(expression)
        if found is not None:
            yield from _instances(found)

    def is_soft_field(self, member: MemberExpr) -> bool:
        """Whether it is a field beside group state, which goes with it."""
        found = self.classes_of(member)
        return any(info.fullname in SOFT for info in found)

    def is_state_field(self, member: MemberExpr) -> bool:
        """Whether it is a field of group state (or a method)."""
        for info in self.classes_of(member.expr):
            if info.fullname == SHARD and member.name in self.shard_fields:
                return True
            if info.fullname in self.classes:
                return True
        return False


def build_server(packages: Sequence[str], more: Mapping[str, str]) -> BuildResult:
    """The packages of the server, and ``more`` modules by their texts, with all their types."""
    options = Options()
    parse_config_file(options, lambda: None, str(CHECKOUT / "pyproject.toml"))
    options.export_types = options.preserve_asts = True
    options.incremental = False
    options.mypy_path = [str(CHECKOUT)]
    sources = create_source_list([str(CHECKOUT / each) for each in packages], options)
    sources += [BuildSource(None, name, text) for name, text in more.items()]
    return build(sources, options)


def find_changes(found: BuildResult, rooms: Collection[str]) -> list[Change]:
    """Every change of group state in these packages and modules that is not replay's."""
    known = _make_known(found)
    _find_changing_methods(found, known)
    changes: list[Change] = []
    for name, tree in found.files.items():
        if name.partition(".")[0] in rooms and not name.startswith(REPLAY_ROOM):
            visitor = _Visitor(known, name)
            visitor.walk(tree)
            changes += visitor.changes
    return sorted(changes)


def _make_known(found: BuildResult) -> Known:
    files = found.files
    classes: dict[str, TypeInfo] = {}
    left = [_class(files, GROUP_STATE)]
    while left:
        info = left.pop()
        if info.fullname in classes or info.is_enum:
            continue
        classes[info.fullname] = info
        for symbol in info.names.values():
            if isinstance(symbol.node, Var) and symbol.node.type is not None:
                left += [
                    each
                    for each in _instances(symbol.node.type)
                    if each.fullname.startswith(STATE_ROOM) and each.fullname not in SOFT
                ]
    names = classes[GROUP_STATE].names.items()
    fields = {name for name, symbol in names if isinstance(symbol.node, Var) and name[:2] != "__"}
    return Known(found.types, classes, frozenset(fields))


def _class(files: Mapping[str, MypyFile], fullname: str) -> TypeInfo:
    module, _, name = fullname.rpartition(".")
    info = files[module].names[name].node
    assert isinstance(info, TypeInfo)
    return info


def _instances(found: Type) -> Iterator[TypeInfo]:
    proper = get_proper_type(found)
    if isinstance(proper, Instance):
        yield proper.type
        for own in proper.args:
            yield from _instances(own)
    elif isinstance(proper, UnionType | TupleType):
        for own in proper.items:
            yield from _instances(own)


def _find_changing_methods(found: BuildResult, known: Known) -> None:
    """Methods that change what they are of, until a round finds no more."""
    before = -1
    while before < len(known.changing):
        before = len(known.changing)
        for info in known.classes.values():
            for method in info.defn.defs.body:
                if isinstance(method, FuncDef) and method.name not in MAKERS:
                    visitor = _Visitor(known, info.module_name)
                    visitor.walk(method)
                    if visitor.changes:
                        known.changing.add(method.fullname)


class _Visitor:
    """Collects the changes of group state in a module; methods of group state are left out."""

    def __init__(self, known: Known, module: str) -> None:
        self.changes: list[Change] = []
        self._known = known
        self._module = module
        self._aliases: set[str] = set()

    # --------------------------------------------------------------------------------- questions

    def _is_of_state(self, expression: Expression) -> bool:
        """Whether it is a field of group state, or what is in one."""
        match expression:
            case NameExpr():
                return expression.name in self._aliases
            case MemberExpr() if self._known.is_soft_field(expression):
                return False
            case MemberExpr():
                return self._known.is_state_field(expression) or self._is_of_state(expression.expr)
            case IndexExpr():
                is_copy = isinstance(expression.index, SliceExpr)
                return not is_copy and self._is_of_state(expression.base)
            case ConditionalExpr():
                return self._is_of_state(expression.if_expr) or self._is_of_state(
                    expression.else_expr
                )
            case OpExpr(op="or" | "and"):
                return self._is_of_state(expression.left) or self._is_of_state(expression.right)
            case TupleExpr() | ListExpr():
                return any(map(self._is_of_state, expression.items))
            case CallExpr(callee=MemberExpr() as callee) if callee.name in SAME_METHODS:
                return self._is_of_state(callee.expr)
            case CallExpr(callee=NameExpr() | MemberExpr() as callee):
                is_same = callee.name in SAME_FUNCTIONS
                return is_same and any(map(self._is_of_state, expression.args))
            case _:
                return False

    def _note(self, node: Expression, what: str) -> None:
        self.changes.append(Change(self._module, node.line, what))

    def _look_at_target(self, target: Expression) -> None:
        match target:
            case TupleExpr() | ListExpr():
                for each in target.items:
                    self._look_at_target(each)
            case StarExpr():
                self._look_at_target(target.expr)
            case IndexExpr() if self._is_of_state(target.base):
                self._note(target, "an assignment to a place")
            case MemberExpr() if self._known.is_state_field(target):
                self._note(target, f"an assignment to .{target.name}")
            case _:
                pass

    def _follow(self, names: Expression, value: Expression) -> None:
        is_of_state = self._is_of_state(value)
        match names:
            case NameExpr() if is_of_state:
                self._aliases.add(names.name)
            case NameExpr():
                self._aliases.discard(names.name)
            case TupleExpr() if is_of_state:
                self._aliases.update(n.name for n in names.items if isinstance(n, NameExpr))
            case _:
                pass

    # ---------------------------------------------------------------------------------- the nodes

    def walk(self, node: Node) -> None:
        """A node and what is in it, in the order in which it stands there."""
        match node:
            case ClassDef() if node.fullname in self._known.classes:
                return
            case FuncDef() if node.name in MAKERS and node.info.fullname == SHARD:
                return
            case FuncDef():
                before = set(self._aliases)
                self._walk_parts(node)
                self._aliases = before
                return
            case ForStmt():
                self._look_at_target(node.index)
                self._follow(node.index, node.expr)
        self._walk_parts(node)
        match node:
            case AssignmentStmt():
                self._look_at_assignment(node)
            case OperatorAssignmentStmt():
                self._look_at_operator_assignment(node)
            case DelStmt():
                self._look_at_target(node.expr)
            case CallExpr(callee=NameExpr() | MemberExpr() as callee) if node.args:
                self._look_at_call(node, callee.name, node.args[0])
            case MemberExpr():
                self._look_at_member(node)

    def _walk_parts(self, node: Node) -> None:
        for name in _parts_of(type(node)):
            for part in _nodes_in(getattr(node, name, None)):
                self.walk(part)

    def _look_at_assignment(self, node: AssignmentStmt) -> None:
        for target in node.lvalues:
            self._look_at_target(target)
            pairs = [(target, node.rvalue)]
            if isinstance(target, TupleExpr) and isinstance(node.rvalue, TupleExpr):
                pairs = list(zip(target.items, node.rvalue.items, strict=False))
            for name, value in pairs:
                self._follow(name, value)

    def _look_at_operator_assignment(self, node: OperatorAssignmentStmt) -> None:
        target = node.lvalue
        self._look_at_target(target)
        if not isinstance(target, NameExpr) or target.name not in self._aliases:
            return
        # A tuple or a number is another one afterwards, a list or a set is the same.
        changes = IN_PLACE.get(node.op, "")
        if any(each.has_readable_member(changes) for each in self._known.classes_of(target)):
            self._note(target, f"{node.op}= on {target.name}")

    def _look_at_call(self, node: CallExpr, name: str, first: Expression) -> None:
        if name not in FUNCTION_CHANGES:
            return
        is_state = any(i.fullname in self._known.classes for i in self._known.classes_of(first))
        if self._is_of_state(first) or (is_state and name in {"setattr", "delattr"}):
            self._note(node, f"{name}()")

    def _look_at_member(self, node: MemberExpr) -> None:
        if node.name in CONTAINER_CHANGES and self._is_of_state(node.expr):
            self._note(node, f".{node.name}")
            return
        for info in self._known.classes_of(node.expr):
            method = info.get_method(node.name)
            if method is not None and method.fullname in self._known.changing:
                self._note(node, f".{node.name}")
                return


@cache
def _parts_of(kind: type[Node]) -> tuple[str, ...]:
    """The attributes of a kind of node that may have nodes in them, and not only refer to some.

    The visitors of mypy are compiled, and what is interpreted cannot inherit from them.
    """
    names = [name for name in dir(kind) if name[0] != "_" and name not in REFERENCES]
    return tuple(name for name in names if not callable(getattr(kind, name)))


def _nodes_in(part: object) -> Iterator[Node]:
    if isinstance(part, Statement | Expression | Pattern | Argument):
        yield part
    elif isinstance(part, list | tuple):
        for each in part:
            yield from _nodes_in(each)
