"""One C source as libclang sees it: a tree of nodes with byte positions, and a list of edits to its text.

Positions are those after macro expansion, so a node that a macro produced lies within the macro's name and arguments.
"""
import importlib
import pathlib
import re
import sys

DEBIAN = "/usr/lib/python3/dist-packages"  # python3-clang is there, whichever Python runs this


UNARY = {"++", "--", "&", "*", "+", "-", "~", "!"}
BINARY = {"=", "+", "-", "*", "/", "%", "<<", ">>", "<", ">", "<=", ">=", "==", "!=", "&", "^", "|", "&&", "||", ",", "+=", "-=", "*=", "/=", "%=",
          "<<=", ">>=", "&=", "^=", "|="}


class Refused(Exception):
    """A transformation does not apply; the text says why, the line where."""

    def __init__(self, line, cause):
        super().__init__(cause)
        self.line = line
        self.cause = cause


class Unparsable(Exception):
    """The source cannot be read at all."""


def bindings():
    """libclang's Python bindings: those of this Python, or Debian's."""
    try:
        return importlib.import_module("clang.cindex")
    except ImportError:
        pass
    sys.path.append(DEBIAN)
    try:
        return importlib.import_module("clang.cindex")
    except ImportError:
        raise Unparsable("needs libclang and its Python bindings (Debian: apt-get install python3-clang; "
                         "elsewhere: pip install libclang)") from None
    finally:
        sys.path.remove(DEBIAN)


class Node:
    """One piece of syntax: `kind` is libclang's name for it, [start, end) its bytes, `kids` its parts in order."""

    def __init__(self, source, cursor, parent):
        self.source, self.cursor, self.parent = source, cursor, parent
        self.kind = cursor.kind.name
        self.start, self.end = cursor.extent.start.offset, cursor.extent.end.offset
        self.name = cursor.spelling
        self.kids = [Node(source, kid, self) for kid in cursor.get_children()]

    @property
    def text(self):
        return self.source.text[self.start:self.end]

    @property
    def line(self):
        return self.source.line_of(self.start)

    @property
    def macro(self):
        """The name of the macro that produced all of this node, or None."""
        return self.source.macro_over(self.start, self.end)

    @property
    def type(self):
        return self.cursor.type.get_canonical()

    def walk(self):
        yield self
        for kid in self.kids:
            yield from kid.walk()

    def ancestors(self):
        node = self.parent
        while node is not None:
            yield node
            node = node.parent

    def within(self, other):
        return other is self or any(node is other for node in self.ancestors())

    def inner(self, casts=False):
        """This expression without parentheses, conversions and, if asked, casts."""
        node = self
        while True:
            if node.kind in ("UNEXPOSED_EXPR", "PAREN_EXPR") and len(node.kids) == 1:
                node = node.kids[0]
            elif casts and node.kind == "CSTYLE_CAST_EXPR" and node.kids:
                node = node.kids[-1]
            else:
                return node

    def outer(self, casts=False):
        """The opposite: the largest expression that has this one's value. Its parent is what uses the value."""
        node = self
        while node.parent is not None and (node.parent.kind in ("UNEXPOSED_EXPR", "PAREN_EXPR")
                                           or casts and node.parent.kind == "CSTYLE_CAST_EXPR"):
            node = node.parent
        return node

    def operator(self):
        """The sign of a unary or binary operator, unary ones behind their operand as 'x++'; None where a macro hides it."""
        if self.macro or not self.kids:
            return None
        first = self.kids[0]
        if self.kind == "UNARY_OPERATOR":
            before, behind = self.source.plain(self.start, first.start), self.source.plain(first.end, self.end)
            before, behind = before.replace("(", "").strip(), behind.replace(")", "").strip()
            return before if before in UNARY else "x" + behind if behind in ("++", "--") and not before else None
        if self.kind in ("BINARY_OPERATOR", "COMPOUND_ASSIGNMENT_OPERATOR") and len(self.kids) == 2:
            sign = self.source.plain(first.end, self.kids[1].start).strip()
            return sign if sign in BINARY else None
        return None

    def changes(self):
        """Whether this operator changes its (first) operand. Where a macro hides the sign, an operand that is not read tells."""
        sign = self.operator()
        if self.kind == "COMPOUND_ASSIGNMENT_OPERATOR" or self.kind in ("BINARY_OPERATOR", "UNARY_OPERATOR") and sign in (
                "=", "++", "--", "x++", "x--"):
            return True
        if self.kind not in ("BINARY_OPERATOR", "UNARY_OPERATOR") or sign is not None or not self.kids:
            return False
        operand = self.kids[0]
        while operand.kind == "PAREN_EXPR" and operand.kids:
            operand = operand.kids[0]
        return operand.kind in ("DECL_REF_EXPR", "MEMBER_REF_EXPR", "ARRAY_SUBSCRIPT_EXPR") or operand.kind == "UNARY_OPERATOR"

    def callee(self):
        """The name of the function that a call calls; None for other nodes and for calls through pointers."""
        if self.kind != "CALL_EXPR" or not self.kids:
            return None
        function = self.kids[0].inner()
        named = function.kind == "DECL_REF_EXPR" and function.cursor.referenced.kind.name == "FUNCTION_DECL"
        return function.name if named else None

    def args(self):
        return self.kids[1:]

    def declaration(self):
        """What a reference names: a key that is the same for all references to one declaration."""
        return self.cursor.referenced.hash if self.kind == "DECL_REF_EXPR" and self.cursor.referenced else None

    def statement(self):
        """The statement, directly in a block, that this node is or belongs to; None outside of blocks."""
        node = self
        while node.parent is not None and node.parent.kind != "COMPOUND_STMT":
            node = node.parent
        return node if node.parent is not None else None


def check(path, text, arguments):
    """Raises Unparsable unless `text`, in the place of the file, compiles without new warnings about its types."""
    cindex = bindings()
    unit = cindex.Index.create().parse(str(path), ["-std=gnu11", *arguments], unsaved_files=[(str(path), text)])
    for d in unit.diagnostics:
        if d.severity >= cindex.Diagnostic.Error:
            raise Unparsable(f"the result does not compile, which is a defect of this command: line {d.location.line}: {d.spelling}")


class Source:
    """The parsed file, and the edits that will be made to its text."""

    def __init__(self, path, arguments=()):
        cindex = bindings()
        self.path = str(path)
        self.text = pathlib.Path(path).read_bytes().decode("latin-1")  # one character a byte: libclang counts bytes
        self.edits = []
        try:
            unit = cindex.Index.create().parse(self.path, ["-std=gnu11", *arguments],
                                               options=cindex.TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD)
        except cindex.LibclangError as why:
            raise Unparsable(str(why)) from None
        except cindex.TranslationUnitLoadError:
            raise Unparsable("libclang cannot read it") from None
        errors = [d for d in unit.diagnostics if d.severity >= cindex.Diagnostic.Error]
        if errors:
            where = errors[0].location
            raise Unparsable(f"line {where.line}: {errors[0].spelling}")
        mine = [c for c in unit.cursor.get_children() if c.location.file and c.location.file.name == self.path]
        self.macros = [(c.extent.start.offset, c.extent.end.offset, c.spelling)
                       for c in mine if c.kind.name == "MACRO_INSTANTIATION"]
        self.functions = [Node(self, c, None) for c in mine if c.kind.name == "FUNCTION_DECL" and c.is_definition()]
        self.elsewhere = self._messages_elsewhere(unit.cursor, cindex)

    def _messages_elsewhere(self, top, cindex):
        """The name of a call for messages in a function that an included file defines, or None."""
        calls = re.compile(r"MPI_(I?[sbr]?send|I?m?recv|I?m?probe|Sendrecv)", re.I)
        for c in top.get_children():
            if c.kind.name == "FUNCTION_DECL" and c.is_definition() and c.location.file and c.location.file.name != self.path:
                for part in c.walk_preorder():
                    if part.kind.name == "CALL_EXPR" and calls.match(part.spelling):
                        return part.spelling
        return None

    def line_of(self, position):
        return self.text.count("\n", 0, position) + 1

    def macro_over(self, start, end):
        return next((name for first, last, name in self.macros if first <= start and end <= last), None)

    def plain(self, start, end):
        """The text between two positions without comments."""
        return re.sub(r"/\*.*?\*/|//[^\n]*", " ", self.text[start:end], flags=re.S)

    def squeezed(self, start, end):
        return re.sub(r"\s+", " ", self.plain(start, end)).strip()

    def behind(self, statement):
        """The position behind a statement and the semicolon that ends it."""
        if self.text[statement.end - 1] in "};" and statement.kind not in ("BINARY_OPERATOR", "VAR_DECL"):
            return statement.end
        found = re.compile(r"(?:\s|/\*.*?\*/|//[^\n]*\n)*;", re.S).match(self.text, statement.end)
        if not found:
            raise Refused(statement.line, "the end of this statement is hidden in a macro")
        return found.end()

    def indent_of(self, position):
        line = self.text[self.text.rfind("\n", 0, position) + 1:position]
        return re.match(r"[ \t]*", line).group(0)

    def fresh_name(self, name):
        while re.search(rf"\b{name}\b", self.text):
            name += "_"
        return name

    # Edits: of those at one position the first comes first.
    def replace(self, start, end, text):
        self.edits.append((start, end, len(self.edits), text))

    def insert_before(self, statement, text):
        self.replace(statement.start, statement.start, text + "\n" + self.indent_of(statement.start))

    def insert_behind(self, statement, text):
        place = self.behind(statement)
        self.replace(place, place, "\n" + self.indent_of(statement.start) + text)

    def remove(self, statement):
        """Takes a statement out, with its line if nothing else is there; a lone branch keeps its semicolon."""
        start, end = statement.start, self.behind(statement)
        if statement.parent.kind != "COMPOUND_STMT":
            self.replace(start, end, ";")
            return
        line_start = self.text.rfind("\n", 0, start) + 1
        line_end = self.text.find("\n", end)
        if not self.text[line_start:start].strip() and line_end >= 0 and not self.text[end:line_end].strip():
            start, end = line_start, line_end + 1
        self.replace(start, end, "")

    def edited(self):
        text, out, place = self.text, [], 0
        for start, end, _, new in sorted(self.edits):
            if start < place:
                raise Unparsable(f"line {self.line_of(start)}: two changes of one place, which is a defect of this command")
            out += [text[place:start], new]
            place = end
        return "".join(out + [text[place:]])
