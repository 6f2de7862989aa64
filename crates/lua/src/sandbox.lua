-- What replaces functions of Lua that call functions: these must be Lua, so that scripts can be
-- suspended and errors pass through them. Run once, with the originals and some of Rust's functions.
local rust, pcall, xpcall, error, type, select, unpack, coroutine, table = ...
local visible, message, spend, compile = rust.visible, rust.message, rust.spend, rust.compile
local bad_argument, is_killed, is_view = rust.bad_argument, rust.is_killed, rust.is_view
local insert_slowly, unpack_slowly = rust.insert_slowly, rust.unpack_slowly
local resume, create = coroutine.resume, coroutine.create
local spend_on, guarded_remove = rust.spend_on, rust.guarded_remove
local insert, remove, concat = table.insert, table.remove, table.concat
local out = {}

function out.only(f, ...)
  return (f(...))
end

-- Errors of commands are tables; pcall shows their text, as it did when they were strings.
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

-- The error that kills a script is raised while Lua counts no instructions: a handler that ran then
-- could never be stopped.
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
  if not ok then bad_argument(1, 'Lua function expected') end
  return function(...)
    spend()
    return continued(resume(co, ...))
  end
end

-- The original does not count well where the numbers are far apart.
function out.unpack(...)
  local list, i, j = ...
  if type(list) == 'table' and (i == nil or type(i) == 'number') and (j == nil or type(j) == 'number') then
    local from, to = i or 1, j or #list
    if from > -1e9 and to < 1e9 and to - from < 7999 then return unpack(list, from, to) end
  end
  return unpack_slowly(...)
end

-- In front of a table's first element there is no end to what would be moved.
function out.insert(...)
  local list, at = ...
  local count = select('#', ...)
  if type(list) == 'table' and not is_view[list]
    and (count == 2 or count == 3 and type(at) == 'number' and at >= 1) then
    if count == 3 then spend_on(list) end
    return insert(...)
  end
  return insert_slowly(...)
end

-- Sorting a long list takes long: Lua's own comparison of elements cannot be interrupted.
function out.less(a, b) return a < b end

function out.remove(...)
  local list = ...
  if type(list) == 'table' and not is_view[list] and select('#', ...) == 1 then return remove(list) end
  return guarded_remove(...)
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
