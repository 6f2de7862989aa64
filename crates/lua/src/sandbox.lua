-- What replaces functions of Lua that call functions: these must be Lua, so that scripts can be
-- suspended and errors pass through them. Run once, with the originals and some of Rust's functions.
local rust, pcall, xpcall, error, type, select, unpack, coroutine, insert, concat = ...
local visible, message, spend, compile = rust.visible, rust.message, rust.spend, rust.compile
local bad_callback, unpack_slowly, is_killed = rust.bad_callback, rust.unpack_slowly, rust.is_killed
local resume, create = coroutine.resume, coroutine.create
local out = {}

-- Errors of commands are tables; pcall shows their text, as it did when they were strings.
local function caught(ok, ...)
  if ok then return true, ... end
  local err = ...
  if type(err) == 'string' then return false, err end
  return false, message(err)
end

function out.pcall(...)
  if select('#', ...) == 0 then return bad_callback('pcall') end
  return caught(pcall(...))
end

local function seen(ok, ...)
  spend()
  if ok then return true, ... end
  return false, visible((...))
end

-- The error that kills a script is raised while Lua counts no instructions: a handler that ran then
-- could never be stopped.
function out.xpcall(f, handler)
  return seen(xpcall(f, function(err)
    if is_killed() then return err end
    return handler(visible(err))
  end))
end

function out.resume(co, ...)
  if type(co) ~= 'thread' then return bad_callback('resume') end
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
  local co = create(f)
  return function(...)
    spend()
    return continued(resume(co, ...))
  end
end

-- The original does not count well where the numbers are far apart.
function out.unpack(list, i, j)
  if type(list) == 'table' and (i == nil or type(i) == 'number') and (j == nil or type(j) == 'number') then
    local from, to = i or 1, j or #list
    if from > -1e9 and to < 1e9 and to - from < 7900 then return unpack(list, from, to) end
  end
  return unpack_slowly(list, i, j)
end

function out.load(reader, name)
  if type(reader) ~= 'function' then return bad_callback('load', reader) end
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
