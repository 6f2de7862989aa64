//! Decoding JSON into Lua values.

use super::super::NESTING_MAX;
use super::{Options, number};
use crate::errors;
use crate::host::{Host, PIECE_BYTES, STEP_BYTES};
use mlua::{Lua, Value};
use std::rc::Rc;

/// The longest number, in bytes, as for Lua's own (`LUAI_MAXNUMERAL`).
const NUMBER_BYTES_MAX: usize = 4096;

enum Token {
    ObjectBegin,
    ObjectEnd,
    ListBegin,
    ListEnd,
    String(Vec<u8>),
    Number(f64),
    Boolean(bool),
    Null,
    Colon,
    Comma,
    End,
    Bad(&'static str),
}

impl Token {
    /// The token's name in error texts.
    fn name(&self) -> &'static str {
        match self {
            Self::ObjectBegin => "T_OBJ_BEGIN",
            Self::ObjectEnd => "T_OBJ_END",
            Self::ListBegin => "T_ARR_BEGIN",
            Self::ListEnd => "T_ARR_END",
            Self::String(_) => "T_STRING",
            Self::Number(_) => "T_NUMBER",
            Self::Boolean(_) => "T_BOOLEAN",
            Self::Null => "T_NULL",
            Self::Colon => "T_COLON",
            Self::Comma => "T_COMMA",
            Self::End => "T_END",
            Self::Bad(why) => why,
        }
    }
}

struct Decoder<'a> {
    lua: &'a Lua,
    host: &'a Rc<Host>,
    options: &'a Options,
    text: &'a [u8],
    at: usize,
    /// The place at which the newest token begins, or at which it is wrong.
    token_at: usize,
    depth: usize,
    /// Up to where the text is counted as steps.
    counted: usize,
}

pub(super) fn decode(
    lua: &Lua,
    host: &Rc<Host>,
    options: &Options,
    text: &[u8],
) -> mlua::Result<Value> {
    if text.len() >= 2 && (text[0] == 0 || text[1] == 0) {
        let text = "JSON parser does not support UTF-16 or UTF-32";
        return Err(errors::complain(lua, text));
    }
    let mut decoder =
        Decoder { lua, host, options, text, at: 0, token_at: 0, depth: 0, counted: 0 };
    let token = decoder.token()?;
    let value = decoder.value(token)?;
    match decoder.token()? {
        Token::End => Ok(value),
        token => Err(decoder.unexpected("the end", &token)),
    }
}

impl Decoder<'_> {
    fn unexpected(&self, expected: &str, found: &Token) -> mlua::Error {
        let (found, at) = (found.name(), self.token_at + 1);
        let text = format!("Expected {expected} but found {found} at character {at}");
        errors::complain(self.lua, text)
    }

    /// The byte at a place; NUL behind the end, as in C's strings.
    fn byte(&self, at: usize) -> u8 {
        self.text.get(at).copied().unwrap_or(0)
    }

    fn rest(&self) -> &[u8] {
        &self.text[self.at..]
    }

    fn token(&mut self) -> mlua::Result<Token> {
        self.host.spend(self.lua, 1)?;
        while matches!(self.byte(self.at), b' ' | b'\t' | b'\n' | b'\r') {
            self.at += 1;
            self.count(0)?;
        }
        self.token_at = self.at;
        let single = match self.byte(self.at) {
            0 => return Ok(Token::End),
            b'{' => Token::ObjectBegin,
            b'}' => Token::ObjectEnd,
            b'[' => Token::ListBegin,
            b']' => Token::ListEnd,
            b',' => Token::Comma,
            b':' => Token::Colon,
            _ => return self.long_token(),
        };
        self.at += 1;
        Ok(single)
    }

    fn long_token(&mut self) -> mlua::Result<Token> {
        const WORDS: [(&[u8], Token); 3] = [
            (b"true", Token::Boolean(true)),
            (b"false", Token::Boolean(false)),
            (b"null", Token::Null),
        ];
        match self.byte(self.at) {
            b'"' => return self.string(),
            b'-' | b'0'..=b'9' => {
                if !self.options.decodes_invalid && self.is_invalid_number() {
                    return Ok(self.bad("invalid number"));
                }
                return Ok(self.number());
            }
            _ => {}
        }
        for (word, token) in WORDS {
            if self.rest().starts_with(word) {
                self.at += word.len();
                return Ok(token);
            }
        }
        let may_be_number = matches!(self.byte(self.at), b'i' | b'I' | b'n' | b'N' | b'+');
        if may_be_number && self.options.decodes_invalid && self.is_invalid_number() {
            return Ok(self.number());
        }
        Ok(self.bad("invalid token"))
    }

    /// Counts a piece of the text once it was read. So many bytes are held of what is decoded.
    fn count(&mut self, held: usize) -> mlua::Result<()> {
        if self.at < self.counted + PIECE_BYTES {
            return Ok(());
        }
        self.counted = self.at;
        self.host.check_room(self.lua, held)?;
        self.host.spend(self.lua, PIECE_BYTES / STEP_BYTES)
    }

    fn bad(&mut self, why: &'static str) -> Token {
        self.token_at = self.at;
        Token::Bad(why)
    }

    fn number(&mut self) -> Token {
        let rest = self.rest();
        match number::parse(&rest[..rest.len().min(NUMBER_BYTES_MAX + 1)]) {
            Some((number, length)) if length <= NUMBER_BYTES_MAX => {
                self.at += length;
                Token::Number(number)
            }
            _ => self.bad("invalid number"),
        }
    }

    /// Whether the text here would be a number for C's `strtod`, but is not one in JSON.
    fn is_invalid_number(&self) -> bool {
        let first = self.byte(self.at);
        if first == b'+' {
            return true;
        }
        let at = self.at + usize::from(first == b'-');
        match self.byte(at) {
            b'0' => matches!(self.byte(at + 1), b'x' | b'X' | b'0'..=b'9'),
            ..=b'9' => false,
            _ => {
                let word = self.text.get(at..at + 3).unwrap_or_default();
                word.eq_ignore_ascii_case(b"inf") || word.eq_ignore_ascii_case(b"nan")
            }
        }
    }

    fn string(&mut self) -> mlua::Result<Token> {
        self.at += 1;
        let mut text = Vec::new();
        loop {
            self.count(text.len())?;
            match self.byte(self.at) {
                b'"' => break,
                0 => return Ok(self.bad("unexpected end of string")),
                b'\\' => {
                    let plain = match self.byte(self.at + 1) {
                        escaped @ (b'"' | b'\\' | b'/') => escaped,
                        b'b' => 0x08,
                        b't' => b'\t',
                        b'n' => b'\n',
                        b'f' => 0x0c,
                        b'r' => b'\r',
                        b'u' => {
                            if !self.unicode(&mut text) {
                                return Ok(self.bad("invalid unicode escape code"));
                            }
                            continue;
                        }
                        _ => return Ok(self.bad("invalid escape code")),
                    };
                    text.push(plain);
                    self.at += 2;
                }
                byte => {
                    text.push(byte);
                    self.at += 1;
                }
            }
        }
        self.at += 1;
        self.host.spend_string(self.lua, text.len())?;
        Ok(Token::String(text))
    }

    /// Decodes `\uXXXX`, or a surrogate pair; returns false if it is no character.
    fn unicode(&mut self, text: &mut Vec<u8>) -> bool {
        let Some(unit) = self.hexadecimal(self.at + 2) else { return false };
        let mut length = 6;
        let mut code = unit;
        if unit & 0xf800 == 0xd800 {
            let is_pair = unit & 0x400 == 0
                && self.byte(self.at + 6) == b'\\'
                && self.byte(self.at + 7) == b'u';
            let low = self.hexadecimal(self.at + 8).filter(|low| low & 0xfc00 == 0xdc00);
            let Some(low) = low.filter(|_| is_pair) else { return false };
            code = 0x1_0000 + ((unit & 0x3ff) << 10 | (low & 0x3ff));
            length = 12;
        }
        let Some(character) = char::from_u32(code) else { return false };
        text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        self.at += length;
        true
    }

    fn hexadecimal(&self, at: usize) -> Option<u32> {
        (at..at + 4)
            .try_fold(0, |code, at| Some(code << 4 | char::from(self.byte(at)).to_digit(16)?))
    }

    fn value(&mut self, token: Token) -> mlua::Result<Value> {
        match token {
            Token::String(text) => self.lua.create_string(text).map(Value::String),
            Token::Number(number) => Ok(Value::Number(number)),
            Token::Boolean(value) => Ok(Value::Boolean(value)),
            Token::Null => Ok(Value::NULL),
            Token::ObjectBegin => self.object(),
            Token::ListBegin => self.list(),
            token => Err(self.unexpected("value", &token)),
        }
    }

    fn descend(&mut self) -> mlua::Result<()> {
        self.depth += 1;
        let depth_max = usize::try_from(self.options.decode_depth_max).unwrap_or(0);
        if self.depth > depth_max.min(NESTING_MAX) {
            let (depth, at) = (self.depth, self.at);
            return Err(errors::complain(
                self.lua,
                format!("Found too many nested data structures ({depth}) at character {at}"),
            ));
        }
        Ok(())
    }

    fn object(&mut self) -> mlua::Result<Value> {
        self.descend()?;
        let table = self.lua.create_table()?;
        let mut token = self.token()?;
        if matches!(token, Token::ObjectEnd) {
            self.depth -= 1;
            return Ok(Value::Table(table));
        }
        loop {
            let Token::String(key) = token else {
                return Err(self.unexpected("object key string", &token));
            };
            let key = self.lua.create_string(key)?;
            match self.token()? {
                Token::Colon => {}
                token => return Err(self.unexpected("colon", &token)),
            }
            let token_of_value = self.token()?;
            let value = self.value(token_of_value)?;
            table.raw_set(key, value)?;
            match self.token()? {
                Token::ObjectEnd => break,
                Token::Comma => token = self.token()?,
                token => return Err(self.unexpected("comma or object end", &token)),
            }
        }
        self.depth -= 1;
        Ok(Value::Table(table))
    }

    fn list(&mut self) -> mlua::Result<Value> {
        self.descend()?;
        let table = self.lua.create_table()?;
        let mut token = self.token()?;
        if matches!(token, Token::ListEnd) {
            self.depth -= 1;
            return Ok(Value::Table(table));
        }
        for index in 1.. {
            let value = self.value(token)?;
            table.raw_set(index, value)?;
            match self.token()? {
                Token::ListEnd => break,
                Token::Comma => token = self.token()?,
                token => return Err(self.unexpected("comma or array end", &token)),
            }
        }
        self.depth -= 1;
        Ok(Value::Table(table))
    }
}
