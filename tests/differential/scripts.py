"""Scripts and functions, drawn: statements of a small grammar with drawn requests inside, whose values go
through conversions, libraries and errors before they are the reply.

Requests within are those whose reply can be compared byte by byte wherever it ends up; the rest is left to
the scripts of `units.py`, which answer with it alone.
"""

import hashlib

import alike
from generate import KEYS, MEMBERS

# Of what hash tables, clocks and chance decide nothing may flow through a script.
INEXACT = (alike.UNORDERED | alike.PAIRS_UNORDERED | alike.DRAWN | alike.SCANS | alike.SECONDS | alike.MILLIS
           | alike.STREAM_TIMES | alike.SORTS | alike.RANKS)

NUMBERS = ["0", "1", "-1", "3", "255", "65536", "2147483648", "-2147483649", "3.7", "-2.5", "1e15", "1e100",
           "0.1", "9007199254740993", "1/3", "10/2"]
TEXTS = ["", "a", "hello", "OK", "a b\r\nc", "10", "0x1F", " 7 ", "3.25", "nan", "1e3", "\x00\xff", "ERR x",
         "-ERR y", "%d %s", "é".encode().decode("latin-1")]
JSON = ["{}", "[]", "[1,2.5,-3e2]", '{"a":[1,{"b":null}]}', '"x\\u00e9\\n"', "null", "true", "[1,", "{a:1}", "nul",
        "[1,2]x", '"\\ud83d\\ude00"', '"\\ud83d"', "1e999", "-", "[[[[]]]]", '{"a":1,"a":2}', "01", "0x10", " 5 ",
        '["\t"]', "NaN", "-Infinity"]
FORMATS = [">I2", "<i4", "bB", "hH", "lL", "f", "d", "s", "c3", "c0", "Bc0", "!4 b i", ">!8bl", "x", "I9", "z", "i3",
           "bc2s", "", "=i", "<"]
PATTERNS = ["a", ".", "%d+", "^h", "o$", "(%w)(%w)", "%s*", "[a-l]+", "()", "x*", "%b()", "[", "%", "(a", "%f[%w]%w+"]
SPECIFIERS = ["%d", "%5.2f", "%s", "%q", "%x", "%g", "%c", "%i|%%", "%10s|%-5s|", "%.3s", "%e", "%u", "%y", "%"]
MESSAGE_PACKS = ["\x01", "\xc0", "\xa3abc", "\x92\x01\x02", "\x81\xa1a\x01", "\xcb?\xf8\x00\x00\x00\x00\x00\x00",
                 "\xa5ab", "\xdc", "\xff", "\x01\x02\x03", "\xc1", "", "\xcf\xff\xff\xff\xff\xff\xff\xff\xff",
                 "\xd3\x80\x00\x00\x00\x00\x00\x00\x00"]
SHEBANGS = ["#!lua\n", "#!lua flags=no-writes\n", "#!lua flags=allow-oom\n", "#!lua flags=no-writes,allow-stale\n",
            "#!lua flags=no-cluster\n", "#!lua flags=nonsense\n", "#!python\n", "#!lua name=x\n", "#!lua"]
LIBRARIES = ["liba", "libb"]
FUNCTIONS = ["fa", "fb", "fc"]


def quoted(word):
    """A Lua string of these bytes."""
    text = word if isinstance(word, str) else word.decode("latin-1")
    return "'" + "".join(char if " " <= char <= "~" and char not in "'\\" else f"\\{ord(char):03d}"
                         for char in text) + "'"


class Writer:
    """Draws the text of one script. `request` draws a request."""

    def __init__(self, random, request):
        self.random, self.request = random, request
        self.draw = random.choice

    def script(self):
        shebang = self.draw(SHEBANGS) if self.random.random() < 0.08 else ""
        return shebang + self.body()

    def body(self):
        lines = [self.statement() for _ in range(self.random.choice([0, 0, 1, 1, 2, 3]))]
        return "\n".join([*lines, self.end()])

    def statement(self):
        return self.draw([
            lambda: f"local a = {self.expression()}",
            lambda: f"local b = {self.call()}",
            lambda: self.call(),
            lambda: f"for i = 1, {self.draw('0123')} do {self.call()} end",
            lambda: f"if {self.expression()} then {self.call()} else {self.call()} end",
            lambda: f"local ok, why = pcall(redis.call, {self.words()})",
            lambda: f"local a = {{}} for i, word in ipairs(ARGV) do a[#a + 1] = word .. {self.value()} end",
            lambda: f"redis.setresp({self.draw(['2', '3', '3', '3', '4', 'nil'])})",
            lambda: f"redis.log({self.draw(['redis.LOG_DEBUG', 'redis.LOG_VERBOSE', '9', 'nil'])}, 'x')",
            lambda: f"redis.set_repl({self.draw(['redis.REPL_ALL', 'redis.REPL_NONE', '77', ''])})"
            if self.random.random() < 0.1 else "redis.replicate_commands()",
            lambda: f"{self.draw(['x', 'KEYS', 'redis', 'print'])} = {self.value()}",
            lambda: f"table.insert(ARGV, {self.value()})",
            lambda: self.draw(["return nil", "do return 5 end", "local = 3", "goto x", "end", "local a <const> = 1"])
            if self.random.random() < 0.2 else "local c = #KEYS + #ARGV",
        ])()

    def end(self):
        return self.draw([
            lambda: f"return {self.call()}",
            lambda: f"return {self.call()}",
            lambda: f"return {self.expression()}",
            lambda: f"return {self.expression()}",
            lambda: f"return {self.value()}",
            lambda: f"return {{{self.expression()}, {self.call()}, {self.value()}}}",
            lambda: f"return {{{self.call()}, a, b, ok, type(why), c, KEYS, ARGV}}",
            lambda: f"error({self.draw([self.failure, self.text])()})",
            lambda: f"local r = redis.pcall({self.words()}) if type(r) == 'table' and r.err then "
                    "return {r.err, r.source, r.line, r.ignore_error_stats_update} end return r",
            lambda: "",
        ])()

    def call(self):
        how = self.draw(["redis.call", "redis.call", "redis.pcall"])
        return f"{how}({self.words()})"

    def words(self):
        """A request's words as Lua writes them."""
        while (request := self.request())[0].decode("latin-1").upper() in INEXACT:
            pass
        return ", ".join(self.as_lua(word) for word in request)

    def as_lua(self, word):
        if word.decode("latin-1") in KEYS and self.random.random() < 0.3:
            return self.draw(["KEYS[1]", "KEYS[2]", "KEYS[1]", "ARGV[1]"])
        if word.isdigit() and word[:1] != b"0" and len(word) < 8 and self.random.random() < 0.3:
            return word.decode()
        return quoted(word)

    def expression(self):
        value = self.draw([self.value, self.value, self.call])
        return self.draw([
            lambda: f"type({value()})",
            lambda: f"tonumber({value()}{self.draw(['', '', ', 16', ', 2', ', 36', ', 1'])})",
            lambda: f"#{value()}",
            lambda: f"{value()} .. {value()}",
            lambda: f"{value()} {self.draw(['+', '-', '*', '/', '%', '^', '==', '<', '<=', 'and', 'or'])} {value()}",
            lambda: f"not {value()}",
            lambda: f"cjson.encode({value()})",
            lambda: f"cjson.decode({quoted(self.draw(JSON))})",
            lambda: f"cjson.decode(cjson.encode({{{value()}, {value()}}}))",
            lambda: f"cmsgpack.pack({value()}, {value()})",
            lambda: f"cmsgpack.unpack(cmsgpack.pack({value()}, {value()}))",
            lambda: f"{{cmsgpack.unpack({quoted(self.draw(MESSAGE_PACKS))})}}",
            lambda: f"{{cmsgpack.{self.draw(['unpack_one', 'unpack_limit'])}({quoted(self.draw(MESSAGE_PACKS))}, "
                    f"{self.draw(['0', '1', '2', '-1'])})}}",
            lambda: f"struct.pack({quoted(self.draw(FORMATS))}, {self.plain()}, {self.plain()}, {self.plain()})",
            lambda: f"{{struct.unpack({quoted(self.draw(FORMATS))}, {quoted(self.draw(MESSAGE_PACKS + TEXTS))} .. "
                    f"'abcdefgh\\000'{self.draw(['', ', 2', ', 0', ', 99'])})}}",
            lambda: f"struct.size({quoted(self.draw(FORMATS))})",
            lambda: f"bit.{self.draw(['tobit', 'bnot', 'bswap', 'tohex'])}({self.plain()})",
            lambda: f"bit.{self.draw(['band', 'bor', 'bxor', 'lshift', 'rshift', 'arshift', 'rol', 'ror', 'tohex'])}"
                    f"({self.plain()}, {self.plain()})",
            lambda: f"redis.sha1hex({self.plain()})",
            lambda: f"redis.{self.draw(['status_reply', 'error_reply'])}({self.plain()})",
            lambda: f"redis.acl_check_cmd({self.words()})",
            lambda: f"string.format({quoted(self.draw(SPECIFIERS))}, {self.plain()}, {self.plain()})",
            lambda: f"{{string.find({self.plain()}, {quoted(self.draw(PATTERNS))})}}",
            lambda: f"{{string.gsub({self.plain()}, {quoted(self.draw(PATTERNS))}, {quoted(self.draw(['', '<%1>', '%0%0', 'z', '%9']))})}}",
            lambda: f"string.{self.draw(['upper', 'lower', 'reverse', 'len', 'byte'])}({self.plain()})",
            lambda: f"string.{self.draw(['sub', 'rep', 'byte'])}({self.plain()}, {self.draw(['1', '0', '-2', '3'])}, "
                    f"{self.draw(['2', '-1', '5'])})",
            lambda: f"table.concat({{{self.plain()}, {self.plain()}}}, {self.draw(['nil', quoted(','), '2'])})",
            lambda: f"(function() local t = {{{self.plain()}, {self.plain()}, {self.plain()}}} "
                    f"{self.draw(['table.sort(t)', 'table.remove(t, 1)', 'table.remove(t)', 't[5] = 1'])} return t end)()",
            lambda: f"{{unpack({value()})}}",
            lambda: f"{{pcall(function() return {value()} end)}}",
            lambda: f"math.{self.draw(['floor', 'ceil', 'abs', 'sqrt', 'max', 'min', 'fmod'])}"
                    f"({self.plain()}, {self.plain()})",
            # Without a seed it goes on from script to script.
            lambda: f"(function() math.randomseed({self.draw(NUMBERS)}) return math.random({self.plain()}, "
                    f"{self.plain()}) end)()",
            lambda: f"{self.draw(['KEYS', 'ARGV', 'redis', 'string', 'os', 'nothing'])}[{self.plain()}]",
            lambda: f"select({self.draw(['1', '-1', quoted('#'), '0', '3'])}, {self.plain()}, {self.plain()})",
            lambda: f"tostring({self.draw([self.draw(NUMBERS), self.text(), 'nil', 'true'])})",
        ])()

    def plain(self):
        """A number or a string, mostly."""
        return self.draw([lambda: self.draw(NUMBERS), lambda: quoted(self.draw(TEXTS)), lambda: self.draw(NUMBERS),
                          lambda: quoted(self.draw(MEMBERS)), lambda: self.draw(["nil", "true", "{}", "ARGV[1]"])])()

    def value(self, depth=2):
        """A value as a reply is made of it."""
        inner = (lambda: self.value(depth - 1)) if depth else self.plain
        return self.draw([
            self.plain, self.plain, self.plain,
            lambda: self.draw(["nil", "true", "false", "ARGV", "KEYS", "KEYS[1]", "ARGV[2]"]),
            lambda: f"{{{inner()}, {inner()}}}",
            lambda: f"{{{inner()}, nil, {inner()}}}",
            lambda: f"{{ok = {inner()}}}",
            self.failure,
            lambda: f"{{double = {inner()}}}",
            lambda: f"{{map = {{[{self.plain_key()}] = {inner()}}}}}",
            lambda: f"{{set = {{[{self.plain_key()}] = {inner()}}}}}",
            lambda: f"{{big_number = {quoted(self.draw(['1', '12345678901234567890123', 'x', '']))}}}",
            lambda: f"{{verbatim_string = {{string = {quoted(self.draw(TEXTS))}, format = {quoted(self.draw(['txt', 'mkd', 'x', '']))}}}}}",
            lambda: f"{{name = {inner()}, {inner()}}}",
        ])()

    def text(self):
        return quoted(self.draw(TEXTS))

    def failure(self):
        """An error of a text: one of anything else ends redis-server."""
        return f"{{err = {self.text()}}}"

    def plain_key(self):
        return self.draw([self.draw(NUMBERS), quoted(self.draw(TEXTS)), "true"])


def operands(random):
    """How many keys there are, keys and arguments; seldom a number that does not fit."""
    keys = [random.choice(KEYS) for _ in range(random.choice([0, 1, 1, 2]))]
    arguments = [random.choice(MEMBERS) for _ in range(random.choice([0, 0, 1, 2]))]
    number = random.choice(["-1", "x", "9", ""]) if random.random() < 0.02 else str(len(keys))
    return [word.encode("latin-1") for word in (number, *keys, *arguments)]


def requests(writer):
    """The requests of one unit that is about a script."""
    random, text = writer.random, writer.script().encode("latin-1")
    digest = hashlib.sha1(text).hexdigest()
    digest = random.choice([digest, digest, digest.upper(), "0" * 40, "x"]).encode()
    return random.choice([
        lambda: [[b"EVAL", text, *operands(random)]],
        lambda: [[b"EVAL", text, *operands(random)]],
        lambda: [[b"EVAL", text, *operands(random)]],
        lambda: [[b"EVAL_RO", text, *operands(random)]],
        lambda: [[b"SCRIPT", b"LOAD", text], [b"EVALSHA", digest, *operands(random)], [b"SCRIPT", b"EXISTS", digest]],
        lambda: [[b"EVALSHA", digest, *operands(random)], [b"EVAL", text, *operands(random)],
                 [random.choice([b"EVALSHA", b"EVALSHA_RO"]), digest, *operands(random)]],
        lambda: [[b"MULTI"], [b"EVAL", text, *operands(random)], [b"EVALSHA_RO", digest, *operands(random)], [b"EXEC"]],
        lambda: [[b"SCRIPT", b"LOAD", text], [b"SCRIPT", b"FLUSH"], [b"EVALSHA", digest, *operands(random)]],
    ])()


def of_functions(writer):
    """The requests of one unit that is about a library of functions."""
    random = writer.random
    call = [random.choice([b"FCALL", b"FCALL", b"FCALL_RO"]), random.choice(FUNCTIONS).encode(), *operands(random)]
    library = random.choice(LIBRARIES).encode()
    return random.choice([
        lambda: [load(writer), call],
        lambda: [load(writer), call],
        lambda: [call],
        lambda: [call],
        lambda: [[b"MULTI"], call, [b"EXEC"]],
        lambda: [[b"FUNCTION", b"DELETE", library]],
        lambda: [[b"FUNCTION", b"LIST", b"LIBRARYNAME", library, b"WITHCODE"]],
        lambda: [[b"FUNCTION", b"LIST"]],
        lambda: [[b"FUNCTION", b"STATS"]],
        lambda: [[b"FUNCTION", b"FLUSH"]] if random.random() < 0.2 else [[b"FUNCTION", b"LIST", b"LIBRARYNAME", b"l*"]],
    ])()


def load(writer):
    random = writer.random
    named, body = random.choice(FUNCTIONS), writer.body().replace("KEYS", "keys").replace("ARGV", "args")
    flags = random.choice(["'no-writes'", "", "'allow-oom'", "'no-writes', 'allow-stale'", "'nonsense'", "5"])
    register = random.choice([
        f"redis.register_function('{named}', function(keys, args)\n{body}\nend)",
        f"redis.register_function('{named}', function(keys, args)\n{body}\nend)",
        f"redis.register_function{{function_name = '{named}', callback = function(keys, args)\n{body}\nend, "
        f"flags = {{{flags}}}, description = 'd'}}",
        f"local function own(keys, args)\n{body}\nend\nredis.register_function('{named}', own)\n"
        f"redis.register_function('{random.choice(FUNCTIONS)}', own)",
        f"redis.register_function('{named}')", f"redis.register_function({writer.value()}, {writer.value()})",
        f"local x = {writer.expression()}\nredis.register_function('{named}', function() return x end)", body,
    ])
    name = random.choice(LIBRARIES)
    header = random.choice([f"#!lua name={name}\n"] * 12 + ["#!lua\n", "", "#!lua name=a-b\n", "#!lua name=\n",
                                                          f"#!lua name={name} engine=x\n", f"#!js name={name}\n"])
    replace = [b"REPLACE"] if random.random() < 0.7 else []
    return [b"FUNCTION", b"LOAD", *replace, (header + register).encode("latin-1")]
