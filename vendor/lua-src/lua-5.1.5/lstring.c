/*
** $Id: lstring.c,v 2.8.1.1 2007/12/27 13:02:25 roberto Exp $
** String table (keeps all strings handled by Lua)
** See Copyright Notice in lua.h
*/


#include <limits.h>
#include <string.h>

#define lstring_c
#define LUA_CORE

#include "lua.h"

#include "lmem.h"
#include "lobject.h"
#include "lstate.h"
#include "lstring.h"



void luaS_resize (lua_State *L, int newsize) {
  GCObject **newhash;
  stringtable *tb;
  int i;
  if (G(L)->gcstate == GCSsweepstring)
    return;  /* cannot resize during GC traverse */
  newhash = luaM_newvector(L, newsize, GCObject *);
  tb = &G(L)->strt;
  for (i=0; i<newsize; i++) newhash[i] = NULL;
  /* rehash */
  for (i=0; i<tb->size; i++) {
    GCObject *p = tb->hash[i];
    while (p) {  /* for each node in the list */
      GCObject *next = p->gch.next;  /* save next */
      unsigned int h = gco2ts(p)->spot;
      int h1 = lmod(h, newsize);  /* new position */
      lua_assert(cast_int(h%newsize) == lmod(h, newsize));
      p->gch.next = newhash[h1];  /* chain it */
      newhash[h1] = p;
      p = next;
    }
  }
  luaM_freearray(L, tb->hash, tb->size, TString *);
  tb->size = newsize;
  tb->hash = newhash;
}


static unsigned long long mixed (unsigned long long a, unsigned long long b) {
  unsigned __int128 product = (unsigned __int128)a * b;
  return (unsigned long long)product ^ (unsigned long long)(product >> 64);
}


/*
** the place of a string in the table of all strings: by all of its bytes and
** by secrets of the state, so that nobody can choose strings that collide
*/
static unsigned int spotof (const global_State *g, const char *str, size_t l) {
  unsigned long long h = g->secrets[0] ^ l;
  unsigned long long bits;
  for (; l >= sizeof(bits); str += sizeof(bits), l -= sizeof(bits)) {
    memcpy(&bits, str, sizeof(bits));
    h = mixed(h ^ bits, g->secrets[1]);
  }
  for (bits = 0; l > 0; l--) bits = (bits << 8) | cast(unsigned char, *str++);
  h = mixed(h ^ bits, g->secrets[1]);
  return (unsigned int)(h ^ (h >> 32));
}


/*
** gives the state the secrets that places of strings and of keys follow from;
** they are of 53 bits
*/
void luaS_setsecrets (lua_State *L, unsigned long long a,
                                    unsigned long long b) {
  stringtable *tb = &G(L)->strt;
  GCObject *all = NULL;
  int i;
  lua_assert(G(L)->gcstate != GCSsweepstring);
  for (i=0; i<tb->size; i++) {  /* take all strings out */
    while (tb->hash[i]) {
      GCObject *p = tb->hash[i];
      tb->hash[i] = p->gch.next;
      p->gch.next = all;
      all = p;
    }
  }
  G(L)->secrets[0] = a * 0x9e3779b97f4a7c15ull + 0xbf58476d1ce4e5b9ull;
  G(L)->secrets[1] = (b * 0xbf58476d1ce4e5b9ull + 0x9e3779b97f4a7c15ull) | 1;
  while (all) {  /* put each at its new place */
    GCObject *p = all;
    TString *ts = rawgco2ts(p);
    all = p->gch.next;
    ts->tsv.spot = spotof(G(L), getstr(ts), ts->tsv.len);
    p->gch.next = tb->hash[lmod(ts->tsv.spot, tb->size)];
    tb->hash[lmod(ts->tsv.spot, tb->size)] = p;
  }
}


static TString *newlstr (lua_State *L, const char *str, size_t l,
                                       unsigned int spot) {
  TString *ts;
  stringtable *tb;
  if (l >= UINT_MAX)
    luaM_toobig(L);
  ts = cast(TString *, luaM_malloc(L, (l+1)*sizeof(char)+sizeof(TString)));
  ts->tsv.len = cast(unsigned int, l);
  ts->tsv.hashed = 0;
  ts->tsv.spot = spot;
  ts->tsv.marked = luaC_white(G(L));
  ts->tsv.tt = LUA_TSTRING;
  ts->tsv.reserved = 0;
  memcpy(ts+1, str, l*sizeof(char));
  ((char *)(ts+1))[l] = '\0';  /* ending 0 */
  tb = &G(L)->strt;
  spot = lmod(spot, tb->size);
  ts->tsv.next = tb->hash[spot];  /* chain new entry */
  tb->hash[spot] = obj2gco(ts);
  tb->nuse++;
  if (tb->nuse > cast(lu_int32, tb->size) && tb->size <= MAX_INT/2)
    luaS_resize(L, tb->size*2);  /* too crowded */
  return ts;
}


TString *luaS_newlstr (lua_State *L, const char *str, size_t l) {
  GCObject *o;
  unsigned int spot = spotof(G(L), str, l);
  for (o = G(L)->strt.hash[lmod(spot, G(L)->strt.size)];
       o != NULL;
       o = o->gch.next) {
    TString *ts = rawgco2ts(o);
    if (ts->tsv.spot == spot && ts->tsv.len == l &&
        (memcmp(str, getstr(ts), l) == 0)) {
      /* string may be dead */
      if (isdead(G(L), o)) changewhite(o);
      return ts;
    }
  }
  return newlstr(L, str, l, spot);  /* not found */
}


/*
** the hash of a string that becomes a key: of all its bytes, as in Redis
*/
unsigned int luaS_computehash (TString *ts) {
  const char *str = getstr(ts);
  size_t l = ts->tsv.len;
  unsigned int h = cast(unsigned int, l);  /* seed */
  for (; l > 0; l--)
    h = h ^ ((h<<5)+(h>>2)+cast(unsigned char, str[l-1]));
  ts->tsv.hash = h;
  ts->tsv.hashed = 1;
  return h;
}


Udata *luaS_newudata (lua_State *L, size_t s, Table *e) {
  Udata *u;
  if (s > MAX_SIZET - sizeof(Udata))
    luaM_toobig(L);
  u = cast(Udata *, luaM_malloc(L, s + sizeof(Udata)));
  u->uv.marked = luaC_white(G(L));  /* is not finalized */
  u->uv.tt = LUA_TUSERDATA;
  u->uv.len = s;
  u->uv.metatable = NULL;
  u->uv.env = e;
  /* chain it on udata list (after main thread) */
  u->uv.next = G(L)->mainthread->next;
  G(L)->mainthread->next = obj2gco(u);
  return u;
}

