/* The founding of a total-order group (docs/concepts/total-order-groups.md): Paxos among three founders with stores.
 *
 * Packets that were sent stay in the air for ever: a receiver may take one at any time, again, or never. That
 * covers loss, duplication and reordering. A crash can come between any write and the packet that follows it;
 * a founder then goes on from its store. Two founders lead, each in ROUNDS ballots (1 or 2).
 *
 * Ballot (round, leader) has the number (round - 1) * LEADERS + leader + 1; 0 is none. A view is the set of
 * founders that take part: 3, 5, 6 or 7 as a mask, coded 0 to 3. A vote is ballot * 4 + view.
 *
 * Agreement: at most one view is decided. Each of the faults below breaks it; the tests look for that.
 */
#ifndef ROUNDS
#define ROUNDS 1
#endif
#ifndef CRASHES
#define CRASHES 1
#endif
#define N 3
#define LEADERS 2
#define BALLOTS (ROUNDS * LEADERS + 1)
#ifdef HALF_IS_ENOUGH
#define QUORUM 1
#else
#define QUORUM 2
#endif

bool prepare[BALLOTS];
int promises[BALLOTS * N];  /* which votes a founder has named in its promises for a ballot */
byte proposals[BALLOTS];    /* which views were proposed in a ballot */
byte acceptances[BALLOTS];  /* which founders have accepted in a ballot */

byte stored_promise[N];
byte stored_vote[N];
byte crashes = CRASHES;
byte decided = 0;           /* the decided view plus 1 */

#define size(mask) (((mask) & 1) + (((mask) >> 1) & 1) + (((mask) >> 2) & 1))
#define code(mask) ((mask) == 3 -> 0 : ((mask) == 5 -> 1 : ((mask) == 6 -> 2 : 3)))

#define is_mine(b) (((b) - 1) % LEADERS == me)
#define add(set, one) set = set | (1 << (one))
#define give_way(b) if :: leading < b -> leading = 0; proposed = 0; promisers = 0; best = 0 :: else fi

/* Prepare of another founder: join the ballot and persist the promise. */
#ifdef PROMISE_BEFORE_WRITE
#define JOIN(b) promised = b; add(promises[b * N + me], vote)
#elif defined(PROMISE_NOT_WRITTEN)
#define JOIN(b) promised = b
#else
#define JOIN(b) promised = b; stored_promise[me] = b
#endif
#define ON_PREPARE(b) \
    :: atomic { !begun && !is_mine(b) && prepare[b] && b > promised -> JOIN(b); give_way(b) }

/* A promise of another founder: the leader counts it, and remembers the highest vote that promises name. */
#define ON_PROMISE(v) \
    :: atomic { v != me && leading && !proposed && promises[leading * N + v] -> \
        named = 4 * BALLOTS; \
        do \
        :: (promises[leading * N + v] >> named) & 1 -> add(promisers, v); \
            if :: named > best -> best = named :: else fi; \
            break \
        :: named > 0 -> named-- \
        :: named == 0 -> break \
        od; \
        named = 0 }

/* A proposal of another founder: accept it and persist the vote. */
#ifdef ACCEPTANCE_BEFORE_WRITE
#define ACCEPT(b, view) promised = b; vote = b * 4 + view; add(acceptances[b], me)
#elif defined(ACCEPTANCE_NOT_WRITTEN)
#define ACCEPT(b, view) promised = b; vote = b * 4 + view
#else
#define ACCEPT(b, view) promised = b; vote = b * 4 + view; stored_promise[me] = b; stored_vote[me] = vote
#endif
#define ON_PROPOSAL(b, view) \
    :: atomic { !begun && !is_mine(b) && ((proposals[b] >> view) & 1) && b >= promised && vote / 4 < b -> \
        ACCEPT(b, view); give_way(b) }
#define ON_PROPOSALS(b) ON_PROPOSAL(b, 0) ON_PROPOSAL(b, 1) ON_PROPOSAL(b, 2) ON_PROPOSAL(b, 3)

proctype founder(byte me) {
    byte promised, vote, leading, promisers, best, proposed, named;
    bool begun;             /* a ballot is chosen, and its Prepare not sent yet */

end:
    do
    /* A founder that leads nothing begins a ballot above all that it has joined; its own promise is persisted. */
    :: atomic { me < LEADERS && !leading && !begun && promised + LEADERS < BALLOTS + me ->
        named = me + 1;
        do :: named <= promised -> named = named + LEADERS :: else -> break od;
        promised = named; named = 0; begun = true;
        stored_promise[me] = promised }
    :: atomic { begun ->
        begun = false; leading = promised; prepare[leading] = true; promisers = 1 << me; best = vote }

    ON_PREPARE(1) ON_PREPARE(2)
#if ROUNDS == 2
    ON_PREPARE(3) ON_PREPARE(4)
#endif
#ifdef PROMISE_BEFORE_WRITE
    :: atomic { stored_promise[me] < promised -> stored_promise[me] = promised }
#else
    :: atomic { promised && !is_mine(promised) && !((promises[promised * N + me] >> vote) & 1) ->
        add(promises[promised * N + me], vote) }
#endif

    ON_PROMISE(0) ON_PROMISE(1) ON_PROMISE(2)
    /* With a quorum of promises the leader proposes the highest vote that they name, else their senders. */
    :: atomic { leading && !proposed && size(promisers) >= QUORUM ->
#ifdef VOTES_IGNORED
        best = 0;
#endif
        if :: best > 3 -> proposed = best % 4 + 1 :: else -> proposed = code(promisers) + 1 fi;
        vote = leading * 4 + proposed - 1;
        stored_vote[me] = vote;
        add(acceptances[leading], me);
        add(proposals[leading], proposed - 1) }

    ON_PROPOSALS(1) ON_PROPOSALS(2)
#if ROUNDS == 2
    ON_PROPOSALS(3) ON_PROPOSALS(4)
#endif
#ifdef ACCEPTANCE_BEFORE_WRITE
    :: atomic { stored_vote[me] < vote -> stored_vote[me] = vote; stored_promise[me] = promised }
#else
    :: atomic { vote && !is_mine(vote / 4) && vote / 4 == promised && !((acceptances[promised] >> me) & 1) ->
        add(acceptances[promised], me) }
#endif

    :: atomic { proposed && size(acceptances[leading]) >= QUORUM && decided != proposed ->
        assert(decided == 0);
        decided = proposed }

    :: atomic { crashes > 0 ->
        crashes--;
        promised = stored_promise[me];
        vote = stored_vote[me];
        leading = 0; promisers = 0; best = 0; proposed = 0; begun = false }
    od
}

init { atomic { run founder(0); run founder(1); run founder(2) } }
