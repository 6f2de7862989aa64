/*
** $Id: ltable.c,v 2.32.1.2 2007/12/28 15:32:23 roberto Exp $
** Lua tables (hash)
** See Copyright Notice in lua.h
*/


/*
** Implementation of tables (aka arrays, objects, or hash tables).
** Tables keep its elements in two parts: an array part and a hash part.
** Non-negative integer keys are all candidates to be kept in the array
** part. The actual size of the array is the largest `n' such that at
** least half the slots between 0 and n are in use.
** Hash uses a mix of chained scatter table with Brent's variation.
** A main invariant of these tables is that, if an element is not
** in its main position (i.e. the `original' position that its hash gives
** to it), then the colliding element is in its own main position.
** Hence even when the load factor reaches 100%, performance remains good.
**
** Kiln's addition: a table in which more than MAXCHAIN keys share a main
** position is `scattered'. Then the main positions of its keys follow from
** their identity and a secret, so that nobody can choose keys that share one.
** A chain holds keys of one main position only: where a removed key's place is
** used again by a key of another one, it is taken out of its chain first. (In
** stock Lua the two chains grow together, without limit.) Where keys are placed
** does not depend on that.
*/

#include <limits.h>
#include <math.h>
#include <string.h>

#define ltable_c
#define LUA_CORE

#include "lua.h"

#include "ldebug.h"
#include "ldo.h"
#include "lgc.h"
#include "lmem.h"
#include "lobject.h"
#include "lstate.h"
#include "lstring.h"
#include "ltable.h"


/*
** max size of array part is 2^MAXBITS
*/
#if LUAI_BITSINT > 26
#define MAXBITS		26
#else
#define MAXBITS		(LUAI_BITSINT-2)
#endif

#define MAXASIZE	(1 << MAXBITS)


#define hashpow2(t,n)      (gnode(t, lmod((n), sizenode(t))))
  
#define hashstr(t,str)  hashpow2(t, luaS_hash(str))
#define hashboolean(t,p)        hashpow2(t, p)


/*
** for some types, it is better to avoid modulus by power of 2, as
** they tend to have many 2 factors.
*/
#define hashmod(t,n)	(gnode(t, ((n) % ((sizenode(t)-1)|1))))


#define hashpointer(t,p)	hashmod(t, IntPoint(p))


/*
** keys in one chain of a table that is not scattered, removed ones among them.
** Numbers with a regular distance, such as times in steps of a minute, come to
** 191 in a table of 4096 places
*/
#define MAXCHAIN	200

/*
** size of a table from which growing takes so long that a count hook is called
** before the next instruction
*/
#define MANYMOVED	4096


/*
** a key takes the place of a node; what else the node holds stays
*/
#define setkey(n,k) \
	{ gkey(n)->value = (k)->value; gkey(n)->tt = (k)->tt; }


/*
** number of ints inside a lua_Number
*/
#define numints		cast_int(sizeof(lua_Number)/sizeof(int))



#define dummynode		(&dummynode_)

static const Node dummynode_ = {
  {{NULL}, LUA_TNIL},  /* value */
  {{{NULL}, LUA_TNIL, 0, NULL}}  /* key */
};


/*
** position in a scattered table of what these bits identify
*/
static Node *scattered (const Table *t, unsigned long long bits) {
  bits = (bits ^ t->scatter) * 0x9e3779b97f4a7c15ull;
  bits ^= bits >> 29;
  bits = (bits ^ ((unsigned long long)t->scatter << 32)) * 0xbf58476d1ce4e5b9ull;
  bits ^= bits >> 32;
  return gnode(t, lmod(bits, sizenode(t)));
}


/*
** hash for lua_Numbers
*/
static Node *hashnum (const Table *t, lua_Number n) {
  unsigned int a[numints];
  int i;
  if (luai_numeq(n, 0))  /* avoid problems with -0 */
    return gnode(t, 0);
  if (t->scatter) {
    unsigned long long bits = 0;
    memcpy(&bits, &n, sizeof(n));
    return scattered(t, bits);
  }
  memcpy(a, &n, sizeof(a));
  for (i = 1; i < numints; i++) a[0] += a[i];
  return hashmod(t, a[0]);
}



/*
** hash for objects and pointers
*/
static Node *hashaddress (const Table *t, const void *p) {
  return t->scatter ? scattered(t, (size_t)p) : hashpointer(t, p);
}


static Node *hashstring (const Table *t, const TString *str) {
  return t->scatter ? scattered(t, str->tsv.spot) : hashstr(t, str);
}


/*
** returns the `main' position of an element in a table (that is, the index
** of its hash value)
*/
static Node *mainposition (const Table *t, const TValue *key) {
  switch (ttype(key)) {
    case LUA_TNUMBER:
      return hashnum(t, nvalue(key));
    case LUA_TSTRING:
      return hashstring(t, rawtsvalue(key));
    case LUA_TBOOLEAN:
      return hashboolean(t, bvalue(key));
    case LUA_TLIGHTUSERDATA:
      return hashaddress(t, pvalue(key));
    default:
      return hashaddress(t, gcvalue(key));
  }
}


/*
** returns the index for `key' if `key' is an appropriate key to live in
** the array part of the table, -1 otherwise.
*/
static int arrayindex (const TValue *key) {
  if (ttisnumber(key)) {
    lua_Number n = nvalue(key);
    int k;
    lua_number2int(k, n);
    if (luai_numeq(cast_num(k), n))
      return k;
  }
  return -1;  /* `key' did not match some condition */
}


/*
** returns the index of a `key' for table traversals. First goes all
** elements in the array part, then elements in the hash part. The
** beginning of a traversal is signalled by -1.
*/
static int findindex (lua_State *L, Table *t, StkId key) {
  int i;
  if (ttisnil(key)) return -1;  /* first iteration */
  i = arrayindex(key);
  if (0 < i && i <= t->sizearray)  /* is `key' inside array part? */
    return i-1;  /* yes; that's the index (corrected to C) */
  else {
    Node *n = mainposition(t, key);
    do {  /* check whether `key' is somewhere in the chain */
      /* key may be dead already, but it is ok to use it in `next' */
      if (luaO_rawequalObj(key2tval(n), key) ||
            (ttype(gkey(n)) == LUA_TDEADKEY && iscollectable(key) &&
             gcvalue(gkey(n)) == gcvalue(key))) {
        i = cast_int(n - gnode(t, 0));  /* key index in hash table */
        /* hash elements are numbered after array ones */
        return i + t->sizearray;
      }
      else n = gnext(n);
    } while (n);
    luaG_runerror(L, "invalid key to " LUA_QL("next"));  /* key not found */
    return 0;  /* to avoid warnings */
  }
}


int luaH_next (lua_State *L, Table *t, StkId key) {
  int i = findindex(L, t, key);  /* find original element */
  for (i++; i < t->sizearray; i++) {  /* try first array part */
    if (!ttisnil(&t->array[i])) {  /* a non-nil value? */
      setnvalue(key, cast_num(i+1));
      setobj2s(L, key+1, &t->array[i]);
      return 1;
    }
  }
  for (i -= t->sizearray; i < sizenode(t); i++) {  /* then hash part */
    if (!ttisnil(gval(gnode(t, i)))) {  /* a non-nil value? */
      setobj2s(L, key, key2tval(gnode(t, i)));
      setobj2s(L, key+1, gval(gnode(t, i)));
      return 1;
    }
  }
  return 0;  /* no more elements */
}


/*
** {=============================================================
** Rehash
** ==============================================================
*/


static int computesizes (int nums[], int *narray) {
  int i;
  int twotoi;  /* 2^i */
  int a = 0;  /* number of elements smaller than 2^i */
  int na = 0;  /* number of elements to go to array part */
  int n = 0;  /* optimal size for array part */
  for (i = 0, twotoi = 1; twotoi/2 < *narray; i++, twotoi *= 2) {
    if (nums[i] > 0) {
      a += nums[i];
      if (a > twotoi/2) {  /* more than half elements present? */
        n = twotoi;  /* optimal size (till now) */
        na = a;  /* all elements smaller than n will go to array part */
      }
    }
    if (a == *narray) break;  /* all elements already counted */
  }
  *narray = n;
  lua_assert(*narray/2 <= na && na <= *narray);
  return na;
}


static int countint (const TValue *key, int *nums) {
  int k = arrayindex(key);
  if (0 < k && k <= MAXASIZE) {  /* is `key' an appropriate array index? */
    nums[ceillog2(k)]++;  /* count as such */
    return 1;
  }
  else
    return 0;
}


static int numusearray (const Table *t, int *nums) {
  int lg;
  int ttlg;  /* 2^lg */
  int ause = 0;  /* summation of `nums' */
  int i = 1;  /* count to traverse all array keys */
  for (lg=0, ttlg=1; lg<=MAXBITS; lg++, ttlg*=2) {  /* for each slice */
    int lc = 0;  /* counter */
    int lim = ttlg;
    if (lim > t->sizearray) {
      lim = t->sizearray;  /* adjust upper limit */
      if (i > lim)
        break;  /* no more elements to count */
    }
    /* count elements in range (2^(lg-1), 2^lg] */
    for (; i <= lim; i++) {
      if (!ttisnil(&t->array[i-1]))
        lc++;
    }
    nums[lg] += lc;
    ause += lc;
  }
  return ause;
}


static int numusehash (const Table *t, int *nums, int *pnasize) {
  int totaluse = 0;  /* total number of elements */
  int ause = 0;  /* summation of `nums' */
  int i = sizenode(t);
  while (i--) {
    Node *n = &t->node[i];
    if (!ttisnil(gval(n))) {
      ause += countint(key2tval(n), nums);
      totaluse++;
    }
  }
  *pnasize += ause;
  return totaluse;
}


static void setarrayvector (lua_State *L, Table *t, int size) {
  int i;
  luaM_reallocvector(L, t->array, t->sizearray, size, TValue);
  for (i=t->sizearray; i<size; i++)
     setnilvalue(&t->array[i]);
  t->sizearray = size;
}


static void clearnodes (Table *t) {
  int i;
  int size = sizenode(t);
  for (i=0; i<size; i++) {
    Node *n = gnode(t, i);
    gnext(n) = NULL;
    gkey(n)->others = 0;
    setnilvalue(gkey(n));
    setnilvalue(gval(n));
  }
  t->lastfree = gnode(t, size);  /* all positions are free */
}


static void setnodevector (lua_State *L, Table *t, int size) {
  int lsize;
  if (size == 0) {  /* no elements to hash part? */
    t->node = cast(Node *, dummynode);  /* use common `dummynode' */
    t->lsizenode = 0;
    t->lastfree = gnode(t, 0);  /* no position is free */
  }
  else {
    lsize = ceillog2(size);
    if (lsize > MAXBITS)
      luaG_runerror(L, "table overflow");
    size = twoto(lsize);
    t->node = luaM_newvector(L, size, Node);
    t->lsizenode = cast_byte(lsize);
    clearnodes(t);
  }
}


/*
** what keys that are placed may find: `chain' keys in a chain, and, all of them
** together, `walks' nodes on the way to keys that must make room or are taken
** out. `crowded' says that one of them was more
*/
typedef struct Bounds {
  int chain;
  long walks;
  int crowded;
} Bounds;

static Node *place (Table *t, const TValue *key, Bounds *bounds);


static const Bounds unbounded = {MAX_INT, LONG_MAX, 0};


/*
** inserts into an empty hash part the elements of a slice that vanishes from
** the array part, and those of an old hash part. Each key is there once, so
** that nothing is searched for. Returns 0, having done a part of it, if the
** keys exceed these bounds.
*/
static int refill (lua_State *L, Table *t, int oldasize, const Node *nold,
                   int oldnodes, Bounds bounds) {
  int i;
  for (i=t->sizearray; i<oldasize; i++) {
    if (!ttisnil(&t->array[i])) {
      TValue k;
      Node *n;
      setnvalue(&k, cast_num(i+1));
      n = place(t, &k, &bounds);
      if (n == NULL) return 0;
      setkey(n, &k);
      setobjt2t(L, gval(n), &t->array[i]);
    }
  }
  for (i = oldnodes - 1; i >= 0; i--) {
    const Node *old = nold+i;
    if (!ttisnil(gval(old))) {
      int k = arrayindex(key2tval(old));
      if (0 < k && k <= t->sizearray) {  /* array part has grown over it? */
        setobjt2t(L, &t->array[k-1], gval(old));
      }
      else {
        Node *n = place(t, key2tval(old), &bounds);
        if (n == NULL) return 0;
        setkey(n, gkey(old));
        setobjt2t(L, gval(n), gval(old));
      }
    }
  }
  return 1;
}


/*
** returns another secret for a scattered table; it is never 0
*/
static unsigned int newsecret (global_State *g) {
  unsigned __int128 product = g->secrets[0] + ++g->scattered;
  product *= g->secrets[1];
  return (unsigned int)(product ^ (product >> 32) ^ (product >> 64)) | 1;
}


/*
** inserts all of them; scatters the table anew if their keys collide. A well
** spread key that makes room is found behind one node or two
*/
static void refillall (lua_State *L, Table *t, int oldasize, const Node *nold,
                       int oldnodes) {
  Bounds bounds = {MAXCHAIN, 1000 + 4L * sizenode(t), 0};
  if (!refill(L, t, oldasize, nold, oldnodes, bounds)) {
    clearnodes(t);
    t->scatter = newsecret(G(L));
    refill(L, t, oldasize, nold, oldnodes, unbounded);
  }
  if (t->sizearray + oldnodes >= MANYMOVED && L->hookcount > 1)
    L->hookcount = 1;
}


/*
** gives a table these sizes, and its hash part this secret (0: it is not
** scattered) or, if too many keys share a main position then, another one
*/
static void resize (lua_State *L, Table *t, int nasize, int nhsize,
                    unsigned int scatter) {
  int oldasize = t->sizearray;
  int oldnodes = sizenode(t);
  Node *nold = t->node;  /* save old hash ... */
  if (nasize > oldasize)  /* array part must grow? */
    setarrayvector(L, t, nasize);
  /* create new hash part with appropriate size */
  setnodevector(L, t, nhsize);  
  t->scatter = scatter;  /* nothing can fail until all elements are there */
  t->sizearray = nasize;
  refillall(L, t, oldasize, nold, oldnodes);
  if (nasize < oldasize)  /* array part must shrink? */
    luaM_reallocvector(L, t->array, oldasize, nasize, TValue);
  if (nold != dummynode)
    luaM_freearray(L, nold, oldnodes, Node);  /* free old array */
}


void luaH_resizearray (lua_State *L, Table *t, int nasize) {
  int nsize = (t->node == dummynode) ? 0 : sizenode(t);
  resize(L, t, nasize, nsize, t->scatter);
}


static void rehash (lua_State *L, Table *t, const TValue *ek) {
  int nasize, na;
  int nums[MAXBITS+1];  /* nums[i] = number of keys between 2^(i-1) and 2^i */
  int i;
  int totaluse;
  for (i=0; i<=MAXBITS; i++) nums[i] = 0;  /* reset counts */
  nasize = numusearray(t, nums);  /* count keys in array part */
  totaluse = nasize;  /* all those keys are integer keys */
  totaluse += numusehash(t, nums, &nasize);  /* count keys in hash part */
  /* count extra key */
  nasize += countint(ek, nums);
  totaluse++;
  /* compute new size for array part */
  na = computesizes(nums, &nasize);
  /* resize the table to new computed sizes */
  resize(L, t, nasize, totaluse - na, t->scatter);
}



/*
** }=============================================================
*/


Table *luaH_new (lua_State *L, int narray, int nhash) {
  Table *t = luaM_new(L, Table);
  luaC_link(L, obj2gco(t), LUA_TTABLE);
  t->metatable = NULL;
  t->flags = cast_byte(~0);
  /* temporary values (kept only if some malloc fails) */
  t->array = NULL;
  t->sizearray = 0;
  t->lsizenode = 0;
  t->scatter = 0;
  t->node = cast(Node *, dummynode);
  setarrayvector(L, t, narray);
  setnodevector(L, t, nhash);
  return t;
}


void luaH_free (lua_State *L, Table *t) {
  if (t->node != dummynode)
    luaM_freearray(L, t->node, sizenode(t), Node);
  luaM_freearray(L, t->array, t->sizearray, TValue);
  luaM_free(L, t);
}


static Node *getfreepos (Table *t) {
  while (t->lastfree-- > t->node) {
    if (ttisnil(gkey(t->lastfree)))
      return t->lastfree;
  }
  return NULL;  /* could not find a free place */
}



/*
** returns the node before this one, which is not at its main position; NULL if
** the way there is too long
*/
static Node *previous (Table *t, const Node *n, Bounds *bounds) {
  Node *other = gnode(t, ~gkey(n)->others);  /* head of its chain */
  while (gnext(other) != n) {
    other = gnext(other);
    if (--bounds->walks < 0) {
      bounds->crowded = 1;
      return NULL;
    }
  }
  return other;
}


/*
** finds a node for a new key; first, check whether key's main 
** position is free. If not, check whether colliding node is in its main 
** position or not: if it is not, move colliding node to an empty place and 
** put new key in its main position; otherwise (colliding node is in its main 
** position), new key goes to an empty position. 
** Returns NULL if no place is free, or if the bounds are exceeded; then it
** says so in them. The caller sets key and value.
*/
static Node *place (Table *t, const TValue *key, Bounds *bounds) {
  Node *mp = mainposition(t, key);
  if (!ttisnil(gval(mp)) || mp == dummynode) {
    Node *n = getfreepos(t);  /* get a free place */
    if (n == NULL) return NULL;  /* cannot find a free place? */
    lua_assert(n != dummynode);
    if (gkey(mp)->others < 0) {  /* is colliding node out of its main position? */
      /* yes; move colliding node into free position */
      Node *othern = previous(t, mp, bounds);
      if (othern == NULL) return NULL;
      gnext(othern) = n;  /* redo the chain with `n' in place of `mp' */
      *n = *mp;  /* copy colliding node into free pos. (mp->next also goes) */
      gnext(mp) = NULL;  /* now `mp' is free */
      gkey(mp)->others = 0;
      setnilvalue(gval(mp));
    }
    else {  /* colliding node is in its own main position */
      if (gkey(mp)->others + 1 >= bounds->chain) {
        bounds->crowded = 1;
        return NULL;
      }
      gkey(mp)->others++;
      /* new node will go into free position */
      gkey(n)->others = ~cast_int(mp - gnode(t, 0));
      gnext(n) = gnext(mp);  /* chain new position */
      gnext(mp) = n;
      mp = n;
    }
  }
  else if (gkey(mp)->others < 0) {  /* was it a key's of another chain? */
    Node *othern = previous(t, mp, bounds);
    if (othern == NULL) return NULL;
    gkey(gnode(t, ~gkey(mp)->others))->others--;
    gnext(othern) = gnext(mp);  /* take it out */
    gnext(mp) = NULL;
    gkey(mp)->others = 0;
  }
  lua_assert(ttisnil(gval(mp)));
  return mp;
}


static TValue *newkey (lua_State *L, Table *t, const TValue *key) {
  Bounds bounds = {MAXCHAIN, LONG_MAX, 0};
  Node *n = place(t, key, &bounds);
  if (bounds.crowded) {  /* do too many keys collide with it? */
    resize(L, t, t->sizearray, sizenode(t), newsecret(G(L)));
    bounds = unbounded;
    n = place(t, key, &bounds);
  }
  if (n == NULL) {  /* is no place free? */
    rehash(L, t, key);  /* grow table */
    return luaH_set(L, t, key);  /* re-insert key into grown table */
  }
  setkey(n, key);
  luaC_barriert(L, t, key);
  return gval(n);
}


/*
** search function for integers
*/
const TValue *luaH_getnum (Table *t, int key) {
  /* (1 <= key && key <= t->sizearray) */
  if (cast(unsigned int, key-1) < cast(unsigned int, t->sizearray))
    return &t->array[key-1];
  else {
    lua_Number nk = cast_num(key);
    Node *n = hashnum(t, nk);
    do {  /* check whether `key' is somewhere in the chain */
      if (ttisnumber(gkey(n)) && luai_numeq(nvalue(gkey(n)), nk))
        return gval(n);  /* that's it */
      else n = gnext(n);
    } while (n);
    return luaO_nilobject;
  }
}


/*
** search function for strings
*/
const TValue *luaH_getstr (Table *t, TString *key) {
  Node *n = hashstring(t, key);
  do {  /* check whether `key' is somewhere in the chain */
    if (ttisstring(gkey(n)) && rawtsvalue(gkey(n)) == key)
      return gval(n);  /* that's it */
    else n = gnext(n);
  } while (n);
  return luaO_nilobject;
}


/*
** main search function
*/
const TValue *luaH_get (Table *t, const TValue *key) {
  switch (ttype(key)) {
    case LUA_TNIL: return luaO_nilobject;
    case LUA_TSTRING: return luaH_getstr(t, rawtsvalue(key));
    case LUA_TNUMBER: {
      int k;
      lua_Number n = nvalue(key);
      lua_number2int(k, n);
      if (luai_numeq(cast_num(k), nvalue(key))) /* index is int? */
        return luaH_getnum(t, k);  /* use specialized version */
      /* else go through */
    }
    default: {
      Node *n = mainposition(t, key);
      do {  /* check whether `key' is somewhere in the chain */
        if (luaO_rawequalObj(key2tval(n), key))
          return gval(n);  /* that's it */
        else n = gnext(n);
      } while (n);
      return luaO_nilobject;
    }
  }
}


TValue *luaH_set (lua_State *L, Table *t, const TValue *key) {
  const TValue *p;
  p = luaH_get(t, key);
  t->flags = 0;
  if (p != luaO_nilobject)
    return cast(TValue *, p);
  else {
    if (ttisnil(key)) luaG_runerror(L, "table index is nil");
    else if (ttisnumber(key) && luai_numisnan(nvalue(key)))
      luaG_runerror(L, "table index is NaN");
    return newkey(L, t, key);
  }
}


TValue *luaH_setnum (lua_State *L, Table *t, int key) {
  const TValue *p;
  p = luaH_getnum(t, key);
  if (p != luaO_nilobject)
    return cast(TValue *, p);
  else {
    TValue k;
    setnvalue(&k, cast_num(key));
    return newkey(L, t, &k);
  }
}


TValue *luaH_setstr (lua_State *L, Table *t, TString *key) {
  const TValue *p;
  p = luaH_getstr(t, key);
  if (p != luaO_nilobject)
    return cast(TValue *, p);
  else {
    TValue k;
    setsvalue(L, &k, key);
    return newkey(L, t, &k);
  }
}


static int unbound_search (Table *t, unsigned int j) {
  unsigned int i = j;  /* i is zero or a present index */
  j++;
  /* find `i' and `j' such that i is present and j is not */
  while (!ttisnil(luaH_getnum(t, j))) {
    i = j;
    j *= 2;
    if (j > cast(unsigned int, MAX_INT)) {  /* overflow? */
      /* table was built with bad purposes: resort to linear search */
      i = 1;
      while (!ttisnil(luaH_getnum(t, i))) i++;
      return i - 1;
    }
  }
  /* now do a binary search between them */
  while (j - i > 1) {
    unsigned int m = (i+j)/2;
    if (ttisnil(luaH_getnum(t, m))) j = m;
    else i = m;
  }
  return i;
}


/*
** Try to find a boundary in table `t'. A `boundary' is an integer index
** such that t[i] is non-nil and t[i+1] is nil (and 0 if t[1] is nil).
*/
int luaH_getn (Table *t) {
  unsigned int j = t->sizearray;
  if (j > 0 && ttisnil(&t->array[j - 1])) {
    /* there is a boundary in the array part: (binary) search for it */
    unsigned int i = 0;
    while (j - i > 1) {
      unsigned int m = (i+j)/2;
      if (ttisnil(&t->array[m - 1])) j = m;
      else i = m;
    }
    return i;
  }
  /* else must find a boundary in hash part */
  else if (t->node == dummynode)  /* hash part is empty? */
    return j;  /* that is easy... */
  else return unbound_search(t, j);
}



#if defined(LUA_DEBUG)

Node *luaH_mainposition (const Table *t, const TValue *key) {
  return mainposition(t, key);
}

int luaH_isdummy (Node *n) { return n == dummynode; }

#endif
