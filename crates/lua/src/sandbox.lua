-- Replacements for Lua functions that call other functions. They are written in Lua, so that
-- scripts can be suspended within them and errors pass through. Run once, with the originals and
-- some Rust functions.
local rust, pcall, xpcall, error, type, select, unpack, coroutine, table, values = ...
local visible, message, spend, compile = rust.visible, rust.message, rust.spend, rust.compile
local compiled = rust.compiled
local bad_argument, is_killed, is_view = rust.bad_argument, rust.is_killed, rust.is_view
local guarded_insert, guarded_remove = rust.guarded_insert, rust.guarded_remove
local unpack_slowly, next_match = rust.unpack_slowly, rust.next_match
local resume, create = coroutine.resume, coroutine.create
local insert, remove, concat = table.insert, table.remove, table.concat
local out = {}

-- The script to be run, with its keys and arguments: one at a time.
local running, keys, arguments

-- `enter` chooses them, with tables of keys and of arguments; `enter_with_key` with one key and the arguments
-- themselves. Both are a part of the cost of every script, so they call nothing.
if rust.has_libraries then
  function out.enter(number, ...)
    running = compiled[number]
    keys, arguments = ...
  end
  function out.enter_with_key(number, key, ...)
    running = compiled[number]
    keys, arguments = { key }, { ... }
  end
else
  function out.enter(number, ...)
    running = compiled[number]
    values.KEYS, values.ARGV = ...
  end
  function out.enter_with_key(number, key, ...)
    running = compiled[number]
    values.KEYS, values.ARGV = { key }, { ... }
  end
end

-- The same for the code of a library, or for nothing.
function out.enter_code(code)
  out.enter(0)
  running = code
end

-- Only the first result counts: all of them may be more than fit on a stack. Nothing may stand behind
-- the call of this: of a script that was killed, every instruction fails.
function out.run()
  if keys then return (running(keys, arguments)) end
  return (running())
end

-- Errors of commands are tables. pcall returns their text, as it did in releases where they were
-- strings.
local function caught(ok, ...)
  if ok then return true, ... end
  local err = ...
  return false, message(err)
end

function out.pcall(...)
  if select('#', ...) == 0 then return false, 'attempt to call a boolean value' end
  return caught(pcall(...))
end

local function seen(ok, ...)
  spend()
  if ok then return true, ... end
  return false, visible((...))
end

-- The error that kills a script is raised while Lua counts no instructions, so a handler that ran
-- then could never be stopped.
function out.xpcall(...)
  if select('#', ...) < 2 then bad_argument(2, 'value expected') end
  local f, handler = ...
  return seen(xpcall(f, function(err)
    if is_killed() then return err end
    return handler(visible(err))
  end))
end

function out.resume(co, ...)
  if type(co) ~= 'thread' then bad_argument(1, 'coroutine expected') end
  spend()
  return seen(resume(co, ...))
end

local function continued(ok, ...)
  spend()
  if ok then return ... end
  local err = visible((...))
  if type(err) == 'string' then error(err, 3) end
  error(err, 0)
end

function out.wrap(f)
  local ok, co = pcall(create, f)
  if not ok and co == 'not enough memory' then error(co, 0) end
  if not ok then bad_argument(1, 'Lua function expected') end
  return function(...)
    spend()
    return continued(resume(co, ...))
  end
end

-- The original overflows where the indices are far apart. Its arguments lie on the stack beside its results:
-- with the list alone there is room for one result more than a script can hand on, as in Redis.
function out.unpack(...)
  local list, i, j = ...
  if i == nil and j == nil and type(list) == 'table' and #list < 8000 then return unpack(list) end
  if type(list) == 'table' and (i == nil or type(i) == 'number') and (j == nil or type(j) == 'number') then
    local from, to = i or 1, j or #list
    if from > -1e9 and to < 1e9 and to - from < 7999 then return unpack(list, from, to) end
  end
  return unpack_slowly(...)
end

-- Where they are called in the usual way the originals do not fail; elsewhere their errors would not say where.
function out.insert(...)
  local list, at = ...
  local count = select('#', ...)
  if type(list) == 'table' and not is_view[list] and (count == 2 or count == 3 and type(at) == 'number') then
    return insert(...)
  end
  return guarded_insert(...)
end

function out.remove(...)
  local list = ...
  if type(list) == 'table' and not is_view[list] and select('#', ...) == 1 then return remove(list) end
  return guarded_remove(...)
end

-- The iterator of gmatch.
function out.iterate(source, pattern)
  local place = 0
  local function found(behind, ...)
    place = behind
    return ...
  end
  return function() return found(next_match(source, pattern, place)) end
end

local function applied(by, is_found, ...)
  if not is_found then return false end
  if type(by) == 'function' then return true, (by(...)) end
  return true, by[(...)]
end

function out.replace_all(step, by)
  local is_found, value = true, nil
  repeat is_found, value = applied(by, step(value)) until not is_found
end

function out.load(...)
  local reader, name = ...
  if type(reader) ~= 'function' then
    bad_argument(1, 'function expected, got ' .. (select('#', ...) == 0 and 'no value' or type(reader)))
  end
  local pieces = {}
  local ok, err = pcall(function()
    while true do
      local piece = reader()
      if piece == nil or piece == '' then return end
      if type(piece) ~= 'string' and type(piece) ~= 'number' then
        error('reader function must return a string', 0)
      end
      insert(pieces, piece)
    end
  end)
  if not ok then return nil, visible(err) end
  return compile(concat(pieces), name or '=(load)')
end

return out
