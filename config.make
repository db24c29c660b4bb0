# SPDX-License-Identifier: BSD-2-Clause

# nginx's ./configure reads this file after `config`. The rule writes the bytes of
# dashboard/page.html as numbers, which ngx_http_bloom_page.c includes.

ngx_bloom_page=$ngx_addon_dir/dashboard/page.html
ngx_bloom_bytes=$NGX_OBJS/ngx_http_bloom_page_html.inc

cat << END                                                    >> $NGX_MAKEFILE

$NGX_OBJS/addon/api/ngx_http_bloom_page.o:	$ngx_bloom_bytes

$ngx_bloom_bytes:	$ngx_bloom_page
	od -A n -v -t u1 $ngx_bloom_page > $ngx_bloom_bytes.od
	sed -e 's/[0-9][0-9]*/&,/g' $ngx_bloom_bytes.od > $ngx_bloom_bytes.new
	rm $ngx_bloom_bytes.od
	mv $ngx_bloom_bytes.new $ngx_bloom_bytes

END
