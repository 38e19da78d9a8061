/* A view change of DRIFT (src/precede/protocols/drift2006/votes.py): three voters remove a source that crashed.
 *
 * The source sent one flood, which some voters have and others get from them. A voter's floor tells that it holds
 * the flood; a node delivers the flood when a majority of floors says so. Who joins a ballot freezes its floor and
 * tells whether it has the flood. The leader proposes that the stream ends behind the last flood that a promise
 * names. A voter accepts when it has all that the proposal keeps. Packets stay in the air for ever, as in
 * founding.pml, and a crash can come between a write and the packet that follows it. Two voters lead a ballot each.
 *
 * A vote is ballot * 2 + end. Checked: one end is decided at most; what was delivered is kept; what is kept is held
 * by a majority. Each of the faults below breaks one of these; the tests look for that.
 */
#ifndef CRASHES
#define CRASHES 1
#endif
#define N 3
#define BALLOTS 3
#ifdef HALF_DELIVERS
#define MANY 1
#else
#define MANY 2
#endif

bool prepare[BALLOTS];
int promises[BALLOTS * N];  /* which pairs (vote, has the flood), coded vote * 2 + has, a voter has told */
byte proposals[BALLOTS];    /* which ends were proposed in a ballot */
byte acceptances[BALLOTS];
byte floors;                /* which voters have told that they hold the flood */
byte holders = 1;           /* which voters have it in their store; voter 0 does at the beginning */
bool delivered;
byte decided;               /* the decided end plus 1 */

byte stored_promise[N];
byte stored_vote[N];
byte crashes = CRASHES;

#define size(mask) (((mask) & 1) + (((mask) >> 1) & 1) + (((mask) >> 2) & 1))
#define has(v) ((holders >> (v)) & 1)
#define is_mine(b) ((b) - 1 == me)
#define add(set, one) set = set | (1 << (one))
#define give_way(b) if :: leading < b -> leading = 0; proposed = 0; promisers = 0; best = 0; end = 0 :: else fi

#ifdef PROMISE_NOT_WRITTEN
#define JOIN(b) promised = b
#else
#define JOIN(b) promised = b; stored_promise[me] = b
#endif
#define ON_PREPARE(b) \
    :: atomic { !is_mine(b) && prepare[b] && b > promised -> JOIN(b); give_way(b) }

/* The leader counts a promise, and remembers the highest vote and the last flood that promises name. */
#ifdef LAST_PROMISE_COUNTS
#define LATEST(have) end = have
#else
#define LATEST(have) if :: have > end -> end = have :: else fi
#endif
#define ON_PROMISE(v) \
    :: atomic { v != me && leading && !proposed && !((promisers >> v) & 1) && promises[leading * N + v] -> \
        named = 4 * BALLOTS; \
        do \
        :: (promises[leading * N + v] >> named) & 1 -> add(promisers, v); LATEST(named % 2); \
            if :: named / 2 > best -> best = named / 2 :: else fi; \
            break \
        :: named > 0 -> named-- \
        :: named == 0 -> break \
        od; \
        named = 0 }

#ifdef ACCEPTED_ALTHOUGH_LACKING
#define holds(kept) true
#else
#define holds(kept) ((kept) == 0 || has(me))
#endif
#define ACCEPT(b, kept) promised = b; vote = b * 2 + kept; stored_promise[me] = b; stored_vote[me] = vote
#define ON_PROPOSAL(b, kept) \
    :: atomic { !is_mine(b) && ((proposals[b] >> kept) & 1) && b >= promised && vote / 2 < b && holds(kept) -> \
        ACCEPT(b, kept); give_way(b) }

proctype voter(byte me) {
    byte promised, vote, leading, promisers, best, end, proposed, named;

end1:
    do
    :: atomic { !has(me) -> add(holders, me) }                     /* another voter passes the flood on */
#ifdef FLOOR_NOT_FROZEN
    :: atomic { has(me) && !((floors >> me) & 1) -> add(floors, me) }
#else
    :: atomic { has(me) && !promised && !((floors >> me) & 1) -> add(floors, me) }
#endif
    :: atomic { size(floors) >= MANY && !delivered ->
        assert(decided != 1);                                      /* delivered although a view has cut it off */
        delivered = true }

    :: atomic { me < 2 && !leading && promised < me + 1 ->
        promised = me + 1; stored_promise[me] = promised;
        leading = promised; prepare[leading] = true; promisers = 1 << me; best = vote; end = has(me) }
    ON_PREPARE(1) ON_PREPARE(2)
    :: atomic { promised && !is_mine(promised) && !((promises[promised * N + me] >> (vote * 2 + has(me))) & 1) ->
        add(promises[promised * N + me], vote * 2 + has(me)) }
    ON_PROMISE(0) ON_PROMISE(1) ON_PROMISE(2)
    :: atomic { leading && !proposed && size(promisers) >= 2 ->
        if :: best > 1 -> proposed = best % 2 + 1 :: else -> proposed = end + 1 fi;
        add(proposals[leading], proposed - 1) }
    :: atomic { proposed && vote / 2 < leading && holds((proposed - 1)) ->
        vote = leading * 2 + proposed - 1; stored_vote[me] = vote;
        add(acceptances[leading], me) }
    ON_PROPOSAL(1, 0) ON_PROPOSAL(1, 1) ON_PROPOSAL(2, 0) ON_PROPOSAL(2, 1)
    :: atomic { vote && !is_mine(vote / 2) && vote / 2 == promised && !((acceptances[promised] >> me) & 1) ->
        add(acceptances[promised], me) }

    :: atomic { proposed && size(acceptances[leading]) >= 2 && decided != proposed ->
        assert(decided == 0);                                      /* one end */
        assert(!delivered || proposed == 2);                       /* what was delivered is kept */
        assert(proposed == 1 || size(holders) >= 2);               /* what is kept is held by a majority */
        decided = proposed }

    :: atomic { crashes > 0 ->
        crashes--;
        promised = stored_promise[me]; vote = stored_vote[me];
        leading = 0; promisers = 0; best = 0; end = 0; proposed = 0 }
    od
}

init { atomic { run voter(0); run voter(1); run voter(2) } }
