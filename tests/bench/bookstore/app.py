#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The bookstore's application: fourteen interactions of TPC-W, a thread and a database connection per connection.

    app.py PORT DATABASE_PORT LOG

LOG gets a line for each statement when its reply is there: interaction, key in the request, the application's thread,
the database's thread, begin and end by CLOCK_MONOTONIC."""

import http.server
import random
import sys
import threading
import time
import urllib.parse

import MySQLdb

BOOKS, CUSTOMERS, SUBJECTS = 1000, 3000, 24
PROMOTION = "select j.i_id, j.i_thumbnail from item i join item j on j.i_id in (i.i_related1, i.i_related2) where i.i_id = %s"
DETAIL = "select * from item join author on i_a_id = a_id where i_id = %s"
CUSTOMER = "select * from customer where c_uname = %s"
CART = "select scl_i_id, scl_qty, i_title, i_cost from cart_line join item on scl_i_id = i_id where scl_sc_id = %s"

local = threading.local()


class Database:
    """One connection, and what it is asked for whom."""

    def __init__(self):
        self.connection = MySQLdb.connect(host="127.0.0.1", port=int(sys.argv[2]), user="root", db="store", autocommit=True)
        self.cursor = self.connection.cursor()
        self.whom, self.thread, self.server_thread = ("connect", 0), threading.get_native_id(), 0
        self.server_thread = self.ask("select tid from information_schema.processlist where id = connection_id()")[0][0]

    def ask(self, statement, *values):
        begin = time.monotonic_ns()
        self.cursor.execute(statement, values)
        rows = self.cursor.fetchall()
        log.write(f"{self.whom[0]} {self.whom[1]} {self.thread} {self.server_thread} {begin} {time.monotonic_ns()}\n")
        return rows


def book():
    return random.randrange(BOOKS) + 1


def user():
    return f"user{random.randrange(CUSTOMERS) + 1}"


def cart_of(db):
    return random.randrange(500) + 1


def home(db):
    db.ask("select c_fname from customer where c_id = %s", random.randrange(CUSTOMERS) + 1)
    db.ask(PROMOTION, book())


def new_products(db):
    db.ask("select i_id, i_title, a_fname, a_lname from item join author on i_a_id = a_id where i_subject = %s"
           " order by i_pub_date desc, i_title limit 50", random.randrange(SUBJECTS))


def best_sellers(db):
    db.ask("select i_id, i_title, a_fname, a_lname, sum(ol_qty) as sold from item join author on i_a_id = a_id"
           " join order_line on ol_i_id = i_id where ol_o_id > (select max(o_id) - 3333 from orders) and i_subject = %s"
           " group by i_id order by sold desc limit 50", random.randrange(SUBJECTS))


def product_detail(db):
    db.ask(DETAIL, book())


def search_request(db):
    db.ask(PROMOTION, book())


def search_results(db):
    kind = random.randrange(3)
    if kind == 0:
        db.ask("select * from item join author on i_a_id = a_id where i_subject = %s order by i_title limit 50",
               random.randrange(SUBJECTS))
    elif kind == 1:
        db.ask("select * from item join author on i_a_id = a_id where i_title like %s order by i_title limit 50",
               f"%{random.randrange(331)} of%")
    else:
        db.ask("select * from item join author on i_a_id = a_id where a_lname like %s order by i_title limit 50",
               f"%ast{random.randrange(211)}%")


def shopping_cart(db):
    cart = cart_of(db)
    db.ask("insert into cart_line values (%s, %s, 1) on duplicate key update scl_qty = scl_qty %% 9 + 1", cart, book())
    db.ask("update cart set sc_date = now() where sc_id = %s", cart)
    db.ask(CART, cart)
    db.ask(PROMOTION, book())


def customer_registration(db):
    db.ask("select c_uname from customer where c_id = %s", random.randrange(CUSTOMERS) + 1)


def buy_request(db):
    db.ask("insert into customer (c_uname, c_fname, c_discount, c_since) values (%s, 'New', 0.1, curdate())", user())
    db.ask(CUSTOMER, user())
    db.ask(CART, cart_of(db))


def buy_confirm(db):
    db.ask(CART, cart_of(db))
    db.ask("insert into orders (o_c_id, o_date, o_total, o_status) values (%s, now(), 30, 'pending')",
           random.randrange(CUSTOMERS) + 1)
    order = db.connection.insert_id()
    for line in range(2):
        what = book()
        db.ask("insert into order_line values (%s, %s, %s, 1)", order, line, what)
        db.ask("update item set i_stock = if(i_stock < 10, 1000, i_stock - 1) where i_id = %s", what)
    db.ask("insert into cc_xacts values (%s, 'visa', 30, now())", order)


def order_inquiry(db):
    db.ask("select c_id from customer where c_uname = %s", user())


def order_display(db):
    db.ask(CUSTOMER, user())
    db.ask("select * from orders where o_c_id = %s order by o_id desc limit 1", random.randrange(CUSTOMERS) + 1)
    db.ask("select * from order_line join item on ol_i_id = i_id where ol_o_id = %s", random.randrange(9000) + 1)


def admin_request(db):
    db.ask(DETAIL, book())


def admin_confirm(db):
    """One statement: what was bought along with the book, sorted, becomes what is shown along with it."""
    what = book()
    db.ask("update item i join (select min(best.ol_i_id) as first, max(best.ol_i_id) as last from (select b.ol_i_id,"
           " sum(b.ol_qty) as sold from order_line a join order_line b on b.ol_o_id = a.ol_o_id"
           " where a.ol_i_id between %s - 50 and %s + 50 group by b.ol_i_id order by sold desc limit 5) best) r"
           " set i.i_related1 = r.first, i.i_related2 = r.last, i.i_pub_date = curdate() where i.i_id = %s",
           what, what, what)
    db.ask(DETAIL, what)


INTERACTIONS = {"/" + made.__name__: made for made in (
    home, new_products, best_sellers, product_detail, search_request, search_results, shopping_cart,
    customer_registration, buy_request, buy_confirm, order_inquiry, order_display, admin_request, admin_confirm)}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body in one call

    def do_GET(self):
        path, _, query = self.path.partition("?")
        if not hasattr(local, "database"):
            local.database = Database()
        local.database.whom = path, urllib.parse.parse_qs(query).get("k", ["0"])[0]
        INTERACTIONS[path](local.database)
        page = f"<html><body>{path}{'.' * 1000}</body></html>".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, *arguments):
        pass


class Application(http.server.ThreadingHTTPServer):
    request_queue_size = 128
    daemon_threads = True


with open(sys.argv[3], "w", buffering=1) as log:
    Application(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
