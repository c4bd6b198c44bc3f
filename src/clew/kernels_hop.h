/* The part of kernels.c that takes one hop of a walk: its edges, and what they are worth. */

/* What a hop goes by. Mentions lead outward, each from one of the `sources`; the first `stated` are
   in facts. Logarithms of claims are by edge of `owners`, of what mentions are worth by entity. */
typedef struct {
    const int64_t *sources, *known, *row, *entity, *stating;
    const float *weights, *claims, *beside, *inward, *whole;
    float *facts, *fits;
    uint8_t *settled;                              /* passages whose fit is exact: none where all */
    const estimates *fact_scores, *passage_scores; /* none where all are exact */
    int64_t count, knowns, outward, stated, common, room;
    float claim, sharpness, fit, unsaid;
} hop;

/* The edges of a hop that lead from a passage to another, all mentions with their entity, fact and
   passage, and the facts and passages that were asked for; each column has room for `room`. */
typedef struct {
    int64_t *through, *to, *entity, *fact, *origin, *facts, *passages;
    float *behind, *carried;
    int64_t count, mentions, asked, fresh;
} led;

/* Edges by kind: passages about what is mentioned, other sentences with it, facts of others that
   mention what the passages are about, and the passages of these; and room for what is computed. */
typedef struct {
    triples owned, beside, inward, naming;
    int64_t *row, *places;
    float *worth, *highest, *scores;
} hop_edges;

enum { HOP_COLUMNS = 15, HOP_NUMBERS = 3 };

static triples next_columns(int64_t **free_columns, int64_t room)
{
    const triples found = {*free_columns, *free_columns + room, *free_columns + 2 * room, room, 0};
    *free_columns += 3 * room;
    return found;
}

static void lay_out(hop_edges *edges, int64_t *columns, int64_t room)
{
    edges->owned = next_columns(&columns, room);
    edges->beside = next_columns(&columns, room);
    edges->inward = next_columns(&columns, room);
    edges->naming = next_columns(&columns, room);
    edges->row = columns;
    edges->places = columns + room; /* two numbers each */
    edges->worth = (float *)(columns + 3 * room);
    edges->highest = edges->worth + room;
    edges->scores = edges->highest + room;
}

/* Find all edges; returns how many of one kind, or of what is asked for, there are at most. */
static int64_t find_edges(const walk_graph *graph, const hop *at, hop_edges *edges)
{
    const incidence *stating = &graph->fact_chunk;
    triples *inward = &edges->inward, *naming = &edges->naming;
    clew_find_owners(graph, at->entity, at->outward, &edges->owned);
    clew_find_co_mentions(graph, at->entity, at->outward, at->common, &edges->beside);
    clew_find_subjects(graph, at->sources, at->count, at->known, at->knowns, at->claim, at->common,
                       inward);
    for (int64_t i = 0; i < inward->count && i < inward->room; i++) {
        const int64_t fact = inward->third[i];
        for (int64_t j = stating->starts[fact]; j < stating->starts[fact + 1]; j++)
            put(naming, i, stating->columns[j], fact);
    }
    const int64_t leading = edges->owned.count + edges->beside.count + naming->count;
    int64_t asked = at->stated + edges->beside.count + inward->count;
    for (int64_t i = 0; i < edges->owned.count && i < edges->owned.room; i++)
        asked += degree(&graph->chunk_fact, edges->owned.second[i]);
    const int64_t most = asked > leading ? asked : leading;
    const int64_t mentions = at->outward + inward->count;
    const int64_t others = at->count > mentions ? at->count : mentions;
    return most > others ? most : others;
}

static void list_mentions(const hop *at, hop_edges *edges, led *out)
{
    for (int64_t i = 0; i < at->outward; i++) {
        edges->row[i] = at->row[i];
        out->entity[i] = at->entity[i];
        out->fact[i] = at->stating[i];
    }
    for (int64_t i = 0; i < edges->inward.count; i++) {
        edges->row[at->outward + i] = edges->inward.first[i];
        out->entity[at->outward + i] = edges->inward.second[i];
        out->fact[at->outward + i] = edges->inward.third[i];
    }
    out->mentions = at->outward + edges->inward.count;
    for (int64_t i = 0; i < out->mentions; i++)
        out->origin[i] = at->sources[edges->row[i]];
}

/* Compare the facts that edges go by with what they are to fit; returns 0, or 1 if one is lost. */
static int64_t settle_facts(const hop *at, hop_edges *edges, led *out)
{
    int64_t *facts = out->facts, asked = 0;
    for (int64_t i = 0; i < at->stated; i++)
        facts[asked++] = at->stating[i];
    for (int64_t i = 0; i < edges->beside.count; i++)
        facts[asked++] = edges->beside.third[i];
    for (int64_t i = 0; i < edges->inward.count; i++)
        facts[asked++] = edges->inward.third[i];
    out->asked = asked;
    return clew_settle(at->fact_scores, facts, asked, edges->places, edges->scores) != 0;
}

/* Find how well the passages fit that what is mentioned leads to: as a whole, or by a fact. */
static int64_t settle_passages(const walk_graph *graph, const hop *at, hop_edges *edges, led *out)
{
    const incidence *facts = &graph->chunk_fact;
    float *fit = edges->worth;
    int64_t fresh = 0, most = 0;
    for (int64_t i = 0; i < edges->owned.count; i++) {
        const int64_t passage = edges->owned.second[i];
        if (at->settled[passage])
            continue;
        at->settled[passage] = 1;
        out->passages[fresh++] = passage;
        most += degree(facts, passage);
    }
    out->fresh = fresh;
    if (at->passage_scores != NULL &&
        clew_settle(at->passage_scores, out->passages, fresh, edges->places, fit))
        return 1;
    for (int64_t i = 0; i < fresh; i++) {
        fit[i] = at->whole[out->passages[i]];
        fit[i] = fit[i] > 0 ? fit[i] : 0;
    }
    const int64_t asked =
        clew_raise_to_best(at->fact_scores, facts->starts, facts->columns, out->passages, fresh,
                           edges->places, most, edges->scores, fit);
    if (asked < 0)
        return 1;
    memcpy(out->facts + out->asked, edges->places, (size_t)asked * sizeof(int64_t));
    out->asked += asked;
    for (int64_t i = 0; i < fresh; i++)
        at->fits[out->passages[i]] = fit[i];
    return 0;
}

static void lead(const hop *at, const hop_edges *edges, led *out, int64_t mention, int64_t to,
                 float value)
{
    const int64_t source = edges->row[mention];
    if (to == at->sources[source])
        return;
    out->through[out->count] = mention;
    out->to[out->count] = to;
    out->behind[out->count++] = value;
    edges->highest[source] = value > edges->highest[source] ? value : edges->highest[source];
}

static void clear(float *highest, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        highest[i] = -99.0f; /* as `_LOWEST` in retrieve/hop.py */
}

/* What each outward mention is worth: by how far its sentence is behind the best of its passage. */
static void weigh_mentions(const hop *at, float *worth, float *highest)
{
    clear(highest, at->count);
    for (int64_t i = 0; i < at->stated; i++) {
        worth[i] = at->facts[at->stating[i]];
        if (worth[i] > highest[at->row[i]])
            highest[at->row[i]] = worth[i];
    }
    for (int64_t i = 0; i < at->stated; i++)
        worth[i] = at->sharpness * (worth[i] - highest[at->row[i]]);
    for (int64_t i = at->stated; i < at->outward; i++)
        worth[i] = at->unsaid;
}

/* Weigh the edges: what each carries, and how far it is behind the best one out of its passage. */
static void weigh_edges(const hop *at, hop_edges *edges, led *out)
{
    const triples *owned = &edges->owned, *beside = &edges->beside, *naming = &edges->naming;
    const float *worth = edges->worth;
    weigh_mentions(at, edges->worth, edges->highest);
    clear(edges->highest, at->count);
    for (int64_t i = 0; i < owned->count; i++) {
        const int64_t mention = owned->first[i], to = owned->second[i];
        const float claim = at->claims[owned->third[i]];
        lead(at, edges, out, mention, to, worth[mention] + claim + at->fit * at->fits[to]);
    }
    for (int64_t i = 0; i < beside->count; i++) {
        const int64_t mention = beside->first[i];
        const float fit = worth[mention] + at->fit * at->facts[beside->third[i]];
        lead(at, edges, out, mention, beside->second[i], fit + at->beside[at->entity[mention]]);
    }
    for (int64_t i = 0; i < naming->count; i++) {
        const int64_t mention = at->outward + naming->first[i];
        const float fit = at->fit * at->facts[naming->third[i]];
        lead(at, edges, out, mention, naming->second[i], fit + at->inward[out->entity[mention]]);
    }
    for (int64_t i = 0; i < out->count; i++) {
        const int64_t source = edges->row[out->through[i]];
        out->behind[i] -= edges->highest[source];
        out->carried[i] = at->weights[at->sources[source]];
    }
}

/* Take a hop: find its edges, compare what they go by, and weigh them. Returns 0; -1 if there is no
   such fact or row, -2 without memory; or the room that it takes, if there is less: nothing is
   changed then. */
int64_t clew_take_hop(const walk_graph *graph, const hop *at, led *out)
{
    hop_edges edges;
    const size_t each = HOP_COLUMNS * sizeof(int64_t) + HOP_NUMBERS * sizeof(float);
    int64_t *columns = malloc((size_t)at->room * each);
    if (columns == NULL)
        return -2;
    lay_out(&edges, columns, at->room);
    int64_t state = find_edges(graph, at, &edges);
    if (state <= at->room) {
        list_mentions(at, &edges, out);
        state = 0;
        if (at->fact_scores != NULL)
            state = settle_facts(at, &edges, out) || settle_passages(graph, at, &edges, out) ? -1 : 0;
        if (state == 0)
            weigh_edges(at, &edges, out);
    }
    free(columns);
    return state;
}
