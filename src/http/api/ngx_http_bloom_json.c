
/*
 * A zone's state in JSON, from tables: another member is another line.
 */

#include "ngx_http_bloom_json.h"
#include "ngx_http_bloom_stats.h"

#include <math.h>


typedef struct ngx_http_bloom_member_s  ngx_http_bloom_member_t;

struct ngx_http_bloom_member_s {
    char                       *name;
    void                      (*handler)(ngx_http_bloom_text_t *text,
                                         ngx_http_bloom_view_t *view,
                                         ngx_http_bloom_member_t *member);
    size_t                      offset;  /* of the value, in the view */
    ngx_http_bloom_member_t    *members; /* of an object */
};


static void ngx_http_bloom_render_members(ngx_http_bloom_text_t *text,
    ngx_http_bloom_view_t *view, ngx_http_bloom_member_t *member);
static void ngx_http_bloom_render_object(ngx_http_bloom_text_t *text,
    ngx_http_bloom_view_t *view, ngx_http_bloom_member_t *member);
static void ngx_http_bloom_render_u64(ngx_http_bloom_text_t *text,
    ngx_http_bloom_view_t *view, ngx_http_bloom_member_t *member);
static void ngx_http_bloom_render_u32(ngx_http_bloom_text_t *text,
    ngx_http_bloom_view_t *view, ngx_http_bloom_member_t *member);
static void ngx_http_bloom_render_size(ngx_http_bloom_text_t *text,
    ngx_http_bloom_view_t *view, ngx_http_bloom_member_t *member);
static void ngx_http_bloom_render_rate(ngx_http_bloom_text_t *text,
    ngx_http_bloom_view_t *view, ngx_http_bloom_member_t *member);
static void ngx_http_bloom_render_measured(ngx_http_bloom_text_t *text,
    ngx_http_bloom_view_t *view, ngx_http_bloom_member_t *member);
static void ngx_http_bloom_render_bool(ngx_http_bloom_text_t *text,
    ngx_http_bloom_view_t *view, ngx_http_bloom_member_t *member);
static void ngx_http_bloom_render_time(ngx_http_bloom_text_t *text,
    ngx_http_bloom_view_t *view, ngx_http_bloom_member_t *member);
static void ngx_http_bloom_render_build(ngx_http_bloom_text_t *text,
    ngx_http_bloom_view_t *view, ngx_http_bloom_member_t *member);
static void ngx_http_bloom_render_name(ngx_http_bloom_text_t *text,
    ngx_http_bloom_view_t *view, ngx_http_bloom_member_t *member);
static void ngx_http_bloom_render_file(ngx_http_bloom_text_t *text,
    ngx_http_bloom_view_t *view, ngx_http_bloom_member_t *member);
static void ngx_http_bloom_render_state(ngx_http_bloom_text_t *text,
    ngx_http_bloom_view_t *view, ngx_http_bloom_member_t *member);
static void ngx_http_bloom_render_layout(ngx_http_bloom_text_t *text,
    ngx_http_bloom_view_t *view, ngx_http_bloom_member_t *member);
static void ngx_http_bloom_render_hash(ngx_http_bloom_text_t *text,
    ngx_http_bloom_view_t *view, ngx_http_bloom_member_t *member);
static void ngx_http_bloom_render_key_form(ngx_http_bloom_text_t *text,
    ngx_http_bloom_view_t *view, ngx_http_bloom_member_t *member);
static void ngx_http_bloom_render_wanted(ngx_http_bloom_text_t *text,
    ngx_http_bloom_view_t *view, ngx_http_bloom_member_t *member);
static void ngx_http_bloom_render_kind(ngx_http_bloom_text_t *text,
    ngx_http_bloom_view_t *view, ngx_http_bloom_member_t *member);
static void ngx_http_bloom_render_journal_error(ngx_http_bloom_text_t *text,
    ngx_http_bloom_view_t *view, ngx_http_bloom_member_t *member);
static void ngx_http_bloom_render_result(ngx_http_bloom_text_t *text,
    ngx_http_bloom_view_t *view, ngx_http_bloom_member_t *member);
static void ngx_http_bloom_render_message(ngx_http_bloom_text_t *text,
    ngx_http_bloom_view_t *view, ngx_http_bloom_member_t *member);
static void ngx_http_bloom_render_served(ngx_http_bloom_text_t *text,
    ngx_http_bloom_view_t *view, ngx_http_bloom_member_t *member);
static void ngx_http_bloom_render_cstring(ngx_http_bloom_text_t *text,
    const char *value);


static ngx_http_bloom_member_t  ngx_http_bloom_image_members[] = {

    { "build_id", ngx_http_bloom_render_build, 0, NULL },
    { "uploaded", ngx_http_bloom_render_bool,
      ngx_http_bloom_of(info.uploaded), NULL },
    { "created", ngx_http_bloom_render_time,
      ngx_http_bloom_of(info.image.created), NULL },
    { "as_of", ngx_http_bloom_render_time,
      ngx_http_bloom_of(info.image.as_of), NULL },
    { "layout", ngx_http_bloom_render_layout, 0, NULL },
    { "lines", ngx_http_bloom_render_u32,
      ngx_http_bloom_of(info.image.geometry.lines), NULL },
    { "hash", ngx_http_bloom_render_hash, 0, NULL },
    { "key_form", ngx_http_bloom_render_key_form, 0, NULL },
    { "k", ngx_http_bloom_render_u32,
      ngx_http_bloom_of(info.image.geometry.k), NULL },
    { "bits", ngx_http_bloom_render_u64,
      ngx_http_bloom_of(info.image.geometry.bits), NULL },
    { "capacity", ngx_http_bloom_render_u64,
      ngx_http_bloom_of(info.image.capacity), NULL },
    { "items", ngx_http_bloom_render_u64,
      ngx_http_bloom_of(info.image.items), NULL },
    { "items_estimated", ngx_http_bloom_render_bool,
      ngx_http_bloom_of(items_estimated), NULL },
    { "fpr", ngx_http_bloom_render_rate,
      ngx_http_bloom_of(info.image.fpr), NULL },

    { NULL, NULL, 0, NULL }
};


static ngx_http_bloom_member_t  ngx_http_bloom_filter_members[] = {

    { "ones", ngx_http_bloom_render_u64, ngx_http_bloom_of(info.ones), NULL },
    { "fill_ratio", ngx_http_bloom_render_rate,
      ngx_http_bloom_of(fill_ratio), NULL },
    { "estimated_items", ngx_http_bloom_render_u64,
      ngx_http_bloom_of(estimated_items), NULL },
    { "estimated_fpr", ngx_http_bloom_render_rate,
      ngx_http_bloom_of(estimated_fpr), NULL },

    { NULL, NULL, 0, NULL }
};


static ngx_http_bloom_member_t  ngx_http_bloom_pages_members[] = {

    { "wanted", ngx_http_bloom_render_wanted, 0, NULL },
    { "kind", ngx_http_bloom_render_kind, 0, NULL },
    { "huge_bytes", ngx_http_bloom_render_size,
      ngx_http_bloom_of(info.huge), NULL },

    { NULL, NULL, 0, NULL }
};


static ngx_http_bloom_member_t  ngx_http_bloom_memory_members[] = {

    { "zone_bytes", ngx_http_bloom_render_size,
      ngx_http_bloom_of(info.size), NULL },
    { "bank_bytes", ngx_http_bloom_render_size,
      ngx_http_bloom_of(info.bank_size), NULL },
    { "filter_bytes", ngx_http_bloom_render_u64,
      ngx_http_bloom_of(filter_bytes), NULL },
    { "pages", ngx_http_bloom_render_object, 0,
      ngx_http_bloom_pages_members },

    { NULL, NULL, 0, NULL }
};


static ngx_http_bloom_member_t  ngx_http_bloom_journal_members[] = {

    { "enabled", ngx_http_bloom_render_bool,
      ngx_http_bloom_of(info.journal), NULL },
    { "bytes", ngx_http_bloom_render_u64,
      ngx_http_bloom_of(info.journal_bytes), NULL },
    { "unsynced_bytes", ngx_http_bloom_render_u64,
      ngx_http_bloom_of(info.unsynced_bytes), NULL },
    { "replay_bytes", ngx_http_bloom_render_u64,
      ngx_http_bloom_of(info.replay_bytes), NULL },
    { "kept_keys", ngx_http_bloom_render_u64,
      ngx_http_bloom_of(info.kept), NULL },
    { "lost_keys", ngx_http_bloom_render_u64,
      ngx_http_bloom_of(info.lost), NULL },
    { "error", ngx_http_bloom_render_journal_error, 0, NULL },

    { NULL, NULL, 0, NULL }
};


static ngx_http_bloom_member_t  ngx_http_bloom_counter_members[] = {

    { "checks", ngx_http_bloom_render_u64, ngx_http_bloom_of(checks), NULL },
    { "absent", ngx_http_bloom_render_u64,
      ngx_http_bloom_of(info.counter[NGX_BLOOM_COUNT_ABSENT]), NULL },
    { "present", ngx_http_bloom_render_u64,
      ngx_http_bloom_of(info.counter[NGX_BLOOM_COUNT_PRESENT]), NULL },
    { "unknown", ngx_http_bloom_render_u64,
      ngx_http_bloom_of(info.counter[NGX_BLOOM_COUNT_UNKNOWN]), NULL },
    { "unparsable", ngx_http_bloom_render_u64,
      ngx_http_bloom_of(info.counter[NGX_BLOOM_COUNT_UNPARSABLE]), NULL },
    { "rejected", ngx_http_bloom_render_u64,
      ngx_http_bloom_of(info.counter[NGX_BLOOM_COUNT_REJECTED]), NULL },
    { "routed", ngx_http_bloom_render_u64,
      ngx_http_bloom_of(info.counter[NGX_BLOOM_COUNT_ROUTED]), NULL },
    { "dry_run", ngx_http_bloom_render_u64,
      ngx_http_bloom_of(info.counter[NGX_BLOOM_COUNT_DRY_RUN]), NULL },
    { "added", ngx_http_bloom_render_u64,
      ngx_http_bloom_of(info.counter[NGX_BLOOM_COUNT_ADDED]), NULL },
    { "known", ngx_http_bloom_render_u64,
      ngx_http_bloom_of(info.counter[NGX_BLOOM_COUNT_KNOWN]), NULL },

    { NULL, NULL, 0, NULL }
};


static ngx_http_bloom_member_t  ngx_http_bloom_feedback_members[] = {

    { "absent", ngx_http_bloom_render_u64,
      ngx_http_bloom_of(info.counter[NGX_BLOOM_COUNT_FEEDBACK_ABSENT]),
      NULL },
    { "false_positives", ngx_http_bloom_render_u64,
      ngx_http_bloom_of(info.counter[NGX_BLOOM_COUNT_FALSE_POSITIVE]), NULL },
    { "measured_fpr", ngx_http_bloom_render_measured,
      ngx_http_bloom_of(measured_fpr), NULL },

    { NULL, NULL, 0, NULL }
};


static ngx_http_bloom_member_t  ngx_http_bloom_audit_members[] = {

    { "audited", ngx_http_bloom_render_u64,
      ngx_http_bloom_of(info.counter[NGX_BLOOM_COUNT_AUDITED]), NULL },
    { "confirmed", ngx_http_bloom_render_u64,
      ngx_http_bloom_of(info.counter[NGX_BLOOM_COUNT_CONFIRMED]), NULL },
    { "wrong_absent", ngx_http_bloom_render_u64,
      ngx_http_bloom_of(info.counter[NGX_BLOOM_COUNT_WRONG_ABSENT]), NULL },
    { "unanswered", ngx_http_bloom_render_u64,
      ngx_http_bloom_of(info.counter[NGX_BLOOM_COUNT_UNANSWERED]), NULL },
    { "learned", ngx_http_bloom_render_u64,
      ngx_http_bloom_of(info.counter[NGX_BLOOM_COUNT_LEARNED]), NULL },

    { NULL, NULL, 0, NULL }
};


static ngx_http_bloom_member_t  ngx_http_bloom_load_members[] = {

    { "result", ngx_http_bloom_render_result, 0, NULL },
    { "message", ngx_http_bloom_render_message, 0, NULL },
    { "when", ngx_http_bloom_render_time,
      ngx_http_bloom_of(info.loaded.when), NULL },
    { "took_ms", ngx_http_bloom_render_u64,
      ngx_http_bloom_of(info.loaded.took), NULL },

    { "under_way", ngx_http_bloom_render_bool,
      ngx_http_bloom_of(loading), NULL },
    { "done_bytes", ngx_http_bloom_render_u64,
      ngx_http_bloom_of(info.load_done), NULL },
    { "total_bytes", ngx_http_bloom_render_u64,
      ngx_http_bloom_of(info.load_total), NULL },

    { NULL, NULL, 0, NULL }
};


static ngx_http_bloom_member_t  ngx_http_bloom_helper_members[] = {

    { "heartbeat", ngx_http_bloom_render_time,
      ngx_http_bloom_of(info.heartbeat), NULL },

    { NULL, NULL, 0, NULL }
};


static ngx_http_bloom_member_t  ngx_http_bloom_zone_members[] = {

    { "name", ngx_http_bloom_render_name, 0, NULL },
    { "state", ngx_http_bloom_render_state, 0, NULL },
    { "generation", ngx_http_bloom_render_u64,
      ngx_http_bloom_of(info.generation), NULL },
    { "file", ngx_http_bloom_render_file, 0, NULL },

    { "image", ngx_http_bloom_render_served, 0, ngx_http_bloom_image_members },
    { "filter", ngx_http_bloom_render_served, 0,
      ngx_http_bloom_filter_members },
    { "memory", ngx_http_bloom_render_object, 0,
      ngx_http_bloom_memory_members },
    { "journal", ngx_http_bloom_render_object, 0,
      ngx_http_bloom_journal_members },
    { "counters", ngx_http_bloom_render_object, 0,
      ngx_http_bloom_counter_members },
    { "feedback", ngx_http_bloom_render_object, 0,
      ngx_http_bloom_feedback_members },
    { "audit", ngx_http_bloom_render_object, 0,
      ngx_http_bloom_audit_members },
    { "load", ngx_http_bloom_render_object, 0, ngx_http_bloom_load_members },
    { "helper", ngx_http_bloom_render_object, 0,
      ngx_http_bloom_helper_members },

    { NULL, NULL, 0, NULL }
};


/* by NGX_BLOOM_SURE and what may be instead */
static const char  *ngx_http_bloom_states[] = {
    "serving",
    "not loaded",
    "stale",
    "behind",
    "damaged"
};


/* by ngx_bloom_outcome_e */
static const char  *ngx_http_bloom_outcomes[] = {
    "ok",
    "refused",
    "no_room",
    "failed"
};


void
ngx_http_bloom_json_zone(ngx_http_bloom_text_t *text,
    ngx_bloom_zone_t *zone, ngx_bloom_info_t *info)
{
    ngx_http_bloom_view_t  view;

    ngx_http_bloom_view(&view, zone, info);

    ngx_http_bloom_render_members(text, &view, ngx_http_bloom_zone_members);
}


static void
ngx_http_bloom_render_members(ngx_http_bloom_text_t *text,
    ngx_http_bloom_view_t *view, ngx_http_bloom_member_t *member)
{
    char  *before;

    before = "{";

    for ( /* void */ ; member->name != NULL; member++) {
        ngx_http_bloom_text_printf(text, "%s\"%s\":", before, member->name);
        member->handler(text, view, member);
        before = ",";
    }

    ngx_http_bloom_text_printf(text, "}");
}


static void
ngx_http_bloom_render_object(ngx_http_bloom_text_t *text,
    ngx_http_bloom_view_t *view, ngx_http_bloom_member_t *member)
{
    ngx_http_bloom_render_members(text, view, member->members);
}


/* An object about what serves: null if nothing does. */
static void
ngx_http_bloom_render_served(ngx_http_bloom_text_t *text,
    ngx_http_bloom_view_t *view, ngx_http_bloom_member_t *member)
{
    if (view->info.generation == 0) {
        ngx_http_bloom_text_printf(text, "null");
        return;
    }

    ngx_http_bloom_render_members(text, view, member->members);
}


static void
ngx_http_bloom_render_u64(ngx_http_bloom_text_t *text,
    ngx_http_bloom_view_t *view, ngx_http_bloom_member_t *member)
{
    ngx_http_bloom_text_printf(text, "%uL",
                               ngx_http_bloom_value(view, member, uint64_t));
}


static void
ngx_http_bloom_render_u32(ngx_http_bloom_text_t *text,
    ngx_http_bloom_view_t *view, ngx_http_bloom_member_t *member)
{
    ngx_http_bloom_text_printf(text, "%uD",
                               ngx_http_bloom_value(view, member, uint32_t));
}


static void
ngx_http_bloom_render_size(ngx_http_bloom_text_t *text,
    ngx_http_bloom_view_t *view, ngx_http_bloom_member_t *member)
{
    ngx_http_bloom_text_printf(text, "%uz",
                               ngx_http_bloom_value(view, member, size_t));
}


/* nginx's own formats know no exponents, and rates may be tiny. */
static void
ngx_http_bloom_render_rate(ngx_http_bloom_text_t *text,
    ngx_http_bloom_view_t *view, ngx_http_bloom_member_t *member)
{
    char  buf[32];

    (void) snprintf(buf, sizeof(buf), "%.6g",
                    ngx_http_bloom_value(view, member, double));

    ngx_http_bloom_text_printf(text, "%s", buf);
}


/* A rate that was measured, if anything was. */
static void
ngx_http_bloom_render_measured(ngx_http_bloom_text_t *text,
    ngx_http_bloom_view_t *view, ngx_http_bloom_member_t *member)
{
    if (isnan(ngx_http_bloom_value(view, member, double))) {
        ngx_http_bloom_text_printf(text, "null");
        return;
    }

    ngx_http_bloom_render_rate(text, view, member);
}


static void
ngx_http_bloom_render_bool(ngx_http_bloom_text_t *text,
    ngx_http_bloom_view_t *view, ngx_http_bloom_member_t *member)
{
    ngx_http_bloom_text_printf(text,
                               ngx_http_bloom_value(view, member, ngx_uint_t)
                               ? "true" : "false");
}


/* RFC 3339, UTC; 0 is no time. */
static void
ngx_http_bloom_render_time(ngx_http_bloom_text_t *text,
    ngx_http_bloom_view_t *view, ngx_http_bloom_member_t *member)
{
    ngx_tm_t  tm;
    uint64_t  ms;

    ms = ngx_http_bloom_value(view, member, uint64_t);

    if (ms == 0) {
        ngx_http_bloom_text_printf(text, "null");
        return;
    }

    ngx_gmtime((time_t) (ms / 1000), &tm);

    ngx_http_bloom_text_printf(text, "\"%4d-%02d-%02dT%02d:%02d:%02d.%03uLZ\"",
                               tm.ngx_tm_year, tm.ngx_tm_mon, tm.ngx_tm_mday,
                               tm.ngx_tm_hour, tm.ngx_tm_min, tm.ngx_tm_sec,
                               ms % 1000);
}


static void
ngx_http_bloom_render_build(ngx_http_bloom_text_t *text,
    ngx_http_bloom_view_t *view, ngx_http_bloom_member_t *member)
{
    u_char  hex[2 * BLOOM_IMAGE_BUILD_ID_LEN];

    ngx_hex_dump(hex, view->info.image.build_id, BLOOM_IMAGE_BUILD_ID_LEN);

    ngx_http_bloom_text_quote(text, hex, sizeof(hex));
}


static void
ngx_http_bloom_render_name(ngx_http_bloom_text_t *text,
    ngx_http_bloom_view_t *view, ngx_http_bloom_member_t *member)
{
    ngx_http_bloom_text_quote(text, view->zone->name.data,
                              view->zone->name.len);
}


static void
ngx_http_bloom_render_file(ngx_http_bloom_text_t *text,
    ngx_http_bloom_view_t *view, ngx_http_bloom_member_t *member)
{
    if (view->zone->file.name.len == 0) {
        ngx_http_bloom_text_printf(text, "null");
        return;
    }

    ngx_http_bloom_text_quote(text, view->zone->file.name.data,
                              view->zone->file.name.len);
}


static void
ngx_http_bloom_render_state(ngx_http_bloom_text_t *text,
    ngx_http_bloom_view_t *view, ngx_http_bloom_member_t *member)
{
    ngx_http_bloom_render_cstring(text,
                                  ngx_http_bloom_states[view->info.unsure]);
}


static void
ngx_http_bloom_render_layout(ngx_http_bloom_text_t *text,
    ngx_http_bloom_view_t *view, ngx_http_bloom_member_t *member)
{
    ngx_http_bloom_render_cstring(text,
                      bloom_layout_name(view->info.image.geometry.layout));
}


static void
ngx_http_bloom_render_hash(ngx_http_bloom_text_t *text,
    ngx_http_bloom_view_t *view, ngx_http_bloom_member_t *member)
{
    ngx_http_bloom_render_cstring(text,
                              bloom_hash_name(view->info.image.hasher.kind));
}


static void
ngx_http_bloom_render_key_form(ngx_http_bloom_text_t *text,
    ngx_http_bloom_view_t *view, ngx_http_bloom_member_t *member)
{
    ngx_http_bloom_render_cstring(text,
                              bloom_key_form_name(view->info.image.key_form));
}


static void
ngx_http_bloom_render_wanted(ngx_http_bloom_text_t *text,
    ngx_http_bloom_view_t *view, ngx_http_bloom_member_t *member)
{
    ngx_http_bloom_render_cstring(text,
                                  ngx_bloom_pages_name(view->info.pages));
}


static void
ngx_http_bloom_render_kind(ngx_http_bloom_text_t *text,
    ngx_http_bloom_view_t *view, ngx_http_bloom_member_t *member)
{
    ngx_http_bloom_render_cstring(text, view->info.huge == 0 ? "small"
                                   : ngx_bloom_pages_name(view->info.got));
}


static void
ngx_http_bloom_render_journal_error(ngx_http_bloom_text_t *text,
    ngx_http_bloom_view_t *view, ngx_http_bloom_member_t *member)
{
    u_char            *p, buf[NGX_MAX_ERROR_STR];
    ngx_bloom_info_t  *info;

    info = &view->info;

    if (info->journal_error == NULL) {
        ngx_http_bloom_text_printf(text, "null");
        return;
    }

    p = ngx_snprintf(buf, NGX_MAX_ERROR_STR / 2, "%s", info->journal_error);

    if (info->journal_err != 0) {
        p = ngx_log_errno(p, buf + NGX_MAX_ERROR_STR, info->journal_err);
    }

    ngx_http_bloom_text_quote(text, buf, p - buf);
}


static void
ngx_http_bloom_render_result(ngx_http_bloom_text_t *text,
    ngx_http_bloom_view_t *view, ngx_http_bloom_member_t *member)
{
    ngx_bloom_result_t  *loaded;

    loaded = &view->info.loaded;

    ngx_http_bloom_render_cstring(text,
                                  loaded->when == 0
                                  ? NULL
                                  : ngx_http_bloom_outcomes[loaded->outcome]);
}


static void
ngx_http_bloom_render_message(ngx_http_bloom_text_t *text,
    ngx_http_bloom_view_t *view, ngx_http_bloom_member_t *member)
{
    ngx_http_bloom_render_cstring(text,
                                  view->info.loaded.message[0] == '\0'
                                  ? NULL
                                  : (char *) view->info.loaded.message);
}


/* NULL is null. */
static void
ngx_http_bloom_render_cstring(ngx_http_bloom_text_t *text, const char *value)
{
    if (value == NULL) {
        ngx_http_bloom_text_printf(text, "null");
        return;
    }

    ngx_http_bloom_text_quote(text, (u_char *) value, ngx_strlen(value));
}
